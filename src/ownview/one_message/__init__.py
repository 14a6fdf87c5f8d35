"""One message from a browser: a history's numbers in two shares, sealed to two servers (docs/one-message.md)."""

"""Commands of devices, of the servers they send to, and of browsers' two servers."""

"""What several methods and plug-ins share."""

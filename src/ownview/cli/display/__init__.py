"""What commands print: tables, progress, text that cannot steer a terminal."""

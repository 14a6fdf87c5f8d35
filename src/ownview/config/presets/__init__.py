"""Settings found for a method on some data, one TOML file each: METHOD/NAME/DATA.toml, default.toml for other data."""

"""A finished model taken along: a page that recommends by itself, and a folder for a device."""

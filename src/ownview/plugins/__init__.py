"""Plug-ins: methods around methods, one file each."""

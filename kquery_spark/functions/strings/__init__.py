"""Strings: case, parts, search, formats, and regular expressions."""

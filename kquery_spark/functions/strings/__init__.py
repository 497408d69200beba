"""String functions: case, substrings, search, formats, and regular expressions."""

"""Hashes, character sets, and encodings of values as strings."""

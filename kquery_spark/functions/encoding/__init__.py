"""Hashes, encryption, character sets, and encodings of values as strings."""

"""Functions of JSON and CSV strings."""

"""Data, queries and timing: everything that shows what the engine is worth. Not part of the installed package."""

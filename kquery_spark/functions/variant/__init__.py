"""Functions of variants."""

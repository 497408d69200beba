"""Numbers: arithmetic, rounding, bases, and exact decimals."""

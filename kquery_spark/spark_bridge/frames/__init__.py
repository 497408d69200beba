"""PySpark's DataFrames, rows, and writers."""

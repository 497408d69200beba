"""JSON files with one object a line, read as Spark reads them."""

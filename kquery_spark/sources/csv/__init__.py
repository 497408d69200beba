"""CSV files, read as Spark reads them."""

"""Delta tables: Parquet files with column mapping and deletion vectors."""

"""Delta tables: Parquet files whose columns may have other names and whose rows may be deleted."""

"""Iceberg tables: data files whose columns are resolved by field id and whose rows may be deleted."""

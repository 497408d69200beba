"""Iceberg tables: data files whose columns go by field ids and whose rows may be deleted."""

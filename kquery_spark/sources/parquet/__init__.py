"""Parquet: footers, statistics, pages, dictionary indices, and the source that reads them."""

"""Parquet: footers, statistics, pages, dictionary codes, and the source that reads them."""

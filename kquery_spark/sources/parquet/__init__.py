"""Parquet: footers, statistics, pages, dictionary codes, and the source made of them."""

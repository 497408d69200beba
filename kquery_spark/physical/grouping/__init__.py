"""Grouping of rows by key columns."""

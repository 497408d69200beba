"""Filters that operators learn while a query runs: they rule out rows, pages and row groups in its scans."""

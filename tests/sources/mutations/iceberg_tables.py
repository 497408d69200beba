"""Iceberg for the mutation campaign."""

from tests.sources.mutations.lake_tables import ICEBERG as FORMAT

__all__ = ["FORMAT"]

"""Delta for the mutation campaign."""

from tests.sources.mutations.lake_tables import DELTA as FORMAT

__all__ = ["FORMAT"]

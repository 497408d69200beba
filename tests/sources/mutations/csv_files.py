"""CSV for the mutation campaign."""

from tests.sources.mutations.text_files import CSV as FORMAT

__all__ = ["FORMAT"]

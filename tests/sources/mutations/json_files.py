"""JSON for the mutation campaign."""

from tests.sources.mutations.text_files import JSON as FORMAT

__all__ = ["FORMAT"]

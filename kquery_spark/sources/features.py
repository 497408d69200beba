"""Features of sources: rows of the documentation's page. Unsupported features carry the reason that declines them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kquery_spark.errors import Unsupported, UnsupportedQuery

_WORD = re.compile(r"\{\w+(?::[^}]*)?\}")


@dataclass(frozen=True)
class Feature:
    """A feature of tables or files. note: conditions of the engine's support.

    reason: why the scan falls back to Spark, with placeholders in braces; empty if the engine supports the feature.
    declines_query: True if the whole query falls back, not just the scan.
    """

    name: str
    note: str = ""
    reason: str = ""
    declines_query: bool = False

    @property
    def reader(self) -> str:
        """``engine`` or ``Spark``."""
        return "Spark" if self.reason else "engine"

    @property
    def remark(self) -> str:
        """The reason without its placeholders, and the note."""
        reason = _WORD.sub("...", self.reason)
        return f"{reason}; {self.note}" if reason and self.note else reason or self.note

    def declined(self, **words: object) -> Unsupported:
        """The error for falling back to Spark. words: values for the placeholders in the reason."""
        error = UnsupportedQuery if self.declines_query else Unsupported
        return error(self.reason.format(**words))


@dataclass(frozen=True)
class SourceSection:
    """A section of the page: introduction, features and closing remarks of one kind of source."""

    title: str
    introduction: str
    features: tuple[Feature, ...]
    closing: str = ""

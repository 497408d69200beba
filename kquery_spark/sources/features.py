"""Features: lines of the page of sources, of which those that Spark reads carry the sentence that declines them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kquery_spark.errors import Unsupported

_WORD = re.compile(r"\{\w+(?::[^}]*)?\}")


@dataclass(frozen=True)
class Feature:
    """What tables or files may have. note: how far the engine reads it.

    reason: why Spark reads it, with names in braces for words of the case; empty where the engine reads it.
    """

    name: str
    note: str = ""
    reason: str = ""

    @property
    def reader(self) -> str:
        """Who reads it, in a word."""
        return "Spark" if self.reason else "engine"

    @property
    def remark(self) -> str:
        """The note, and the reason without the words of a case."""
        reason = _WORD.sub("...", self.reason)
        return f"{reason}; {self.note}" if reason and self.note else reason or self.note

    def declined(self, **words: object) -> Unsupported:
        """The error that leaves a case to Spark; words: those of the reason."""
        return Unsupported(self.reason.format(**words))


@dataclass(frozen=True)
class SourceSection:
    """A section of the page: what a kind of source is, its features, and what else there is to know."""

    title: str
    introduction: str
    features: tuple[Feature, ...]
    closing: str = ""

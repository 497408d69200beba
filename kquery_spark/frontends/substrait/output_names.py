"""Names for the columns of relations. Substrait refers to columns by position; only hints name them."""

from __future__ import annotations

from collections.abc import Sequence

from kquery_spark.frontends.substrait.messages import Message


def hinted_names(message: Message, count: int) -> list[str] | None:
    """Return the names in the hint of a relation; None unless it has a distinct name for each column."""
    if not message.HasField("common") or not message.common.HasField("hint"):
        return None
    names = list(message.common.hint.output_names)
    return names if len(names) == count == len(set(names)) and all(names) else None


def output_names(message: Message, stems: Sequence[str]) -> list[str]:
    """Return unique names for the columns of a relation: those of its hint, or else those that ``unique_names`` makes."""
    return hinted_names(message, len(stems)) or unique_names(stems)


def unique_names(stems: Sequence[str]) -> list[str]:
    """Return the names, with a number appended to repeated ones: ``a, a`` becomes ``a, a_2``."""
    counts: dict[str, int] = {}
    names: dict[str, None] = {}
    for stem in stems:
        name, count = stem, counts.get(stem, 1)
        while name in names:
            count += 1
            name = f"{stem}_{count}"
        counts[stem] = count
        names[name] = None
    return list(names)

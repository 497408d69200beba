"""The paths of GET_JSON_OBJECT: ``$``, names, indexes, and one wildcard for the elements of an array."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from kquery_spark.errors import Unsupported
from kquery_spark.functions.registry import COLUMN

_BLANK = r"[\t\n\x0b\f\r ]*"
_STEP = re.compile(
    rf"{_BLANK}(?:(?P<each>\[{_BLANK}\*{_BLANK}\])|(?P<wild>\.{_BLANK}\*|\['\*'\])"
    rf"|\.{_BLANK}(?P<name>[^.\[]+)"
    rf"|\['{_BLANK}(?P<quoted>[^'?]+){_BLANK}'\]"
    rf"|\[{_BLANK}(?P<index>[0-9]+){_BLANK}\])"
)
_MAX_INDEX = 2**31 - 1
EACH = -1
"""The step to each element of an array."""
_TRICKY = re.compile(r"[\t\n\x0b\f\r ]")


@functools.lru_cache(maxsize=512)
def parse_path(path: str) -> tuple[str | int, ...] | None:
    """The steps of a path, names and indexes from 0 on, and EACH; None for one that Spark cannot read, which gives NULL."""
    if _TRICKY.search(path):
        raise Unsupported("a JSON path with blanks stays with Spark")
    if not path.startswith("$"):
        return None
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return None
        if step["wild"] is not None:
            raise Unsupported("a JSON path with a wildcard for names stays with Spark")
        at = step.end()
        if step["each"] is not None:
            steps.append(EACH)
            continue
        if step["index"] is None:
            steps.append(step["name"] or step["quoted"])
            continue
        if int(step["index"]) > _MAX_INDEX:
            raise Unsupported("a JSON path with an index past 2147483647 stays with Spark")
        steps.append(int(step["index"]))
    _check_each(steps)
    return tuple(steps)


def _check_each(steps: Sequence[str | int]) -> None:
    """Raise Unsupported for wildcards whose matches Spark writes in other ways than those of a single one."""
    if steps.count(EACH) > 1:
        raise Unsupported("a JSON path with two wildcards stays with Spark")
    before = steps[: steps.index(EACH)] if EACH in steps else ()
    if before and isinstance(before[-1], int):
        raise Unsupported("a JSON path with a wildcard behind an index stays with Spark")


def check_path(values: Sequence[object]) -> None:
    """Raise Unsupported for a path that is not a literal of names and indexes."""
    path = values[1]
    if path is COLUMN:
        raise Unsupported("The path of GET_JSON_OBJECT must be a literal.")
    if isinstance(path, str):
        parse_path(path)

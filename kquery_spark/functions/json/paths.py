"""The paths of GET_JSON_OBJECT: ``$``, names, indexes, and a wildcard for the elements of an array."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from kquery_spark.errors import Unsupported
from kquery_spark.functions.registry import COLUMN
from kquery_spark.kernels.json_wildcards import EACH

_BLANK = r"[\t\n\x0b\f\r ]*"
_STEP = re.compile(
    rf"{_BLANK}(?:(?P<each>\[{_BLANK}\*{_BLANK}\])|(?P<wild>\.{_BLANK}\*|\['\*'\])"
    rf"|\.{_BLANK}(?P<name>[^.\[]+)"
    rf"|\['{_BLANK}(?P<quoted>[^']+){_BLANK}'\]"
    rf"|\[{_BLANK}(?P<index>[0-9]+){_BLANK}\])"
)
_MAX_INDEX = 2**31 - 1
_TRICKY = re.compile(r"[\t\n\x0b\f\r ]")


@functools.lru_cache(maxsize=512)
def parse_path(path: str) -> tuple[str | int, ...] | None:
    """Parse a path to steps: names, indexes (from 0), and EACH for ``[*]``; None if the path always gives NULL.

    These are malformed paths, and paths with a wildcard for names (``.*``), which never matches in Spark.
    """
    if _TRICKY.search(path):
        raise Unsupported("a JSON path with blanks is not supported")
    if not path.startswith("$"):
        return None
    steps: list[str | int] = []
    at, has_wildcard = 1, False
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return None
        at = step.end()
        if step["wild"] is not None:
            has_wildcard = True
            continue
        if step["each"] is not None:
            steps.append(EACH)
            continue
        if step["index"] is None:
            steps.append(step["name"] or step["quoted"])
            continue
        digits = step["index"].lstrip("0") or "0"
        if len(digits) > len(str(_MAX_INDEX)) or int(digits) > _MAX_INDEX:
            raise Unsupported("a JSON path with an index past 2147483647 is not supported")
        steps.append(int(digits))
    if has_wildcard:
        return None
    if steps.count(EACH) > 1:
        raise Unsupported("a JSON path with several wildcards is not supported")
    return tuple(steps)


def check_path(values: Sequence[object]) -> None:
    """Raise Unsupported for a path that is not a literal of names and indexes."""
    path = values[1]
    if path is COLUMN:
        raise Unsupported("the path of GET_JSON_OBJECT must be a literal")
    if isinstance(path, str):
        parse_path(path)


def has_question_mark(_: Sequence[object], values: Sequence[object]) -> bool:
    """Return whether a literal path has a question mark, which earlier releases do not read in quotes."""
    return isinstance(values[1], str) and "?" in values[1]

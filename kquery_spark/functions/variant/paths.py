"""The paths of VARIANT_GET: ``$``, names of fields, and indexes from 0 on."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from kquery_spark.errors import Unsupported

_STEP = re.compile(
    r"\.(?P<name>[^.\[]+)|\['(?P<single>[^']*)'\]|\[\"(?P<double>[^\"]*)\"\]|\[0*(?P<index>[0-9]{1,10})\]"
)
_MAX_INDEX = 2**31 - 1


@functools.lru_cache(maxsize=512)
def parse_variant_path(path: str) -> tuple[str | int, ...]:
    """The steps of a path; Unsupported for one that Spark raises an error for."""
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            break
        at = step.end()
        if step["index"] is None:
            steps.append(step[step.lastgroup or 0])
        elif int(step["index"]) <= _MAX_INDEX:
            steps.append(int(step["index"]))
        else:
            break
    else:
        if path.startswith("$"):
            return tuple(steps)
    raise Unsupported(f"Spark raises an error for the path {path!r} of variant_get")


def check_variant_path(values: Sequence[object]) -> None:
    """Raise Unsupported for a path that is not a literal that Spark can read."""
    if not isinstance(values[1], str):
        raise Unsupported("variant_get by a path that is not a constant is not supported")
    parse_variant_path(values[1])

"""Evaluates JSON paths with one wildcard on a parsed document, as GET_JSON_OBJECT does.

The steps after the wildcard have at most one match in each element of the array. The matches become an array:
``$.a[*].b`` of ``{"a": [{"b": 1}, {}, {"b": 2}]}`` is ``[1,2]``. A single match is written without brackets, unless the
wildcard follows an index: ``$.a[1][*]`` of ``{"a": [[1, 2], [3]]}`` is ``[3]``. The compiled loops of ``json_loops`` do this
for most strings.
"""

from __future__ import annotations

from collections.abc import Sequence

from kquery_spark.kernels.json_documents import PrintDouble, to_json, value_at, values_at
from kquery_spark.kernels.json_parser import Node

EACH = -2
"""The wildcard step of a path, which selects each element of an array. In the compiled loops -1 is a step by name."""


def write_matches(document: Node, steps: Sequence[str | int], print_double: PrintDouble) -> str | None:
    """Return the matches of a path with a wildcard as a string; None if there are none."""
    wildcard = steps.index(EACH)
    keeps_brackets = wildcard > 0 and isinstance(steps[wildcard - 1], int)
    written = ""
    for array in values_at(document, steps[:wildcard]):
        if array.kind != "array":
            continue
        values = (value_at(item, steps[wildcard + 1 :]) for item in array.items)
        # Spark first writes other arrays to a buffer of characters, for which Jackson has fewer escapes (``to_json``)
        matches = [to_json(value, print_double, keeps_brackets) for value in values if value is not None]
        if keeps_brackets:
            # an array without matches, which is already written, stays before that of a later field of the same name
            written += f"{' ' if written else ''}[{','.join(matches)}]"
        elif matches:
            written = matches[0] if len(matches) == 1 else f"[{','.join(matches)}]"
        if matches:
            return written
    return None

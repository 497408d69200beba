"""Evaluates JSON paths with wildcards on a parsed document, as GET_JSON_OBJECT does.

Spark follows Hive. For ``{"a": [[1, 2], [3]]}``:

- one wildcard keeps the nesting: ``$.a[*]`` is ``[[1,2],[3]]``; an array with a single match is written without brackets;
- two wildcards in a row flatten: ``$.a[*][*]`` is ``[1,2,3]``;
- a wildcard after an index keeps the brackets even around a single match: ``$.a[1][*]`` is ``[3]``.

If an array without matches has already been opened, ``[]`` stays in the output. The compiled loops of ``json_loops`` do the
same for most strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kquery_spark.kernels.json_documents import PrintDouble, to_json
from kquery_spark.kernels.json_parser import Node

EACH = -2
"""The wildcard step of a path, which selects each element of an array. In the compiled loops -1 is a step by name."""
_RAW, _QUOTED, _FLATTENED = 0, 1, 2  # Spark's write styles: before a wildcard, after one, after two


def write_matches(node: Node, steps: Sequence[str | int], print_double: PrintDouble) -> str | None:
    """Return the matches of a path with wildcards as a string; None if there are none."""
    output = _Output(print_double, " ", escapes_wide=True)
    return "".join(output.parts) if _write(node, steps, _RAW, output) else None


@dataclass
class _Output:
    """Collects the values of an array, separated by commas, or those of the whole result, separated by blanks."""

    print_double: PrintDouble
    separator: str
    escapes_wide: bool
    parts: list[str] = field(default_factory=list)

    def add(self, json: str) -> None:
        """Append a value."""
        self.parts.append(self.separator + json if self.parts else json)

    def nested_array(self) -> _Output:
        """Return an output for the elements of an array that Spark writes directly to this output."""
        return _Output(self.print_double, ",", self.escapes_wide)

    def buffered_array(self) -> _Output:
        """Return an output for an array that Spark buffers first. It buffers characters, so it escapes fewer of them."""
        return _Output(self.print_double, ",", escapes_wide=False)

    def elements(self) -> str:
        """Return the elements of this array without brackets."""
        return "".join(self.parts)


def _write(value: Node, steps: Sequence[str | int], style: int, output: _Output) -> bool:
    """Write the matches of the steps in a value; return True if there are any."""
    if not steps:
        if value.kind == "array" and style == _FLATTENED:
            return sum(_write(item, steps, style, output) for item in value.items) > 0
        output.add(to_json(value, output.print_double, output.escapes_wide))
        return True
    step = steps[0]
    if value.kind == "array" and isinstance(step, int):
        return _write_elements(value, step, steps[1:], style, output)
    return value.kind == "object" and any(
        _write(item, steps[1:], style, output)
        for name, item in value.fields()
        if name == step and item.kind != "null"
    )


def _write_elements(value: Node, step: int, steps: Sequence[str | int], style: int, output: _Output) -> bool:
    """Write the matches of the other steps in element ``step`` of an array, or in each element."""
    is_followed_by_each = bool(steps) and steps[0] == EACH
    if step != EACH:
        if step >= len(value.items):
            return False
        return _write(value.items[step], steps, _QUOTED if is_followed_by_each else style, output)
    if is_followed_by_each or style == _QUOTED:
        # Spark opens the array at once, so it stays even if it has no or one element.
        inner, inner_steps = output.nested_array(), steps[1:] if is_followed_by_each else steps
        style = _FLATTENED if is_followed_by_each else _QUOTED
        count = sum(_write(item, inner_steps, style, inner) for item in value.items)
        output.add(f"[{inner.elements()}]")
        return count > 0
    # Otherwise Spark buffers the array, and writes brackets only around two or more elements.
    buffer = output.buffered_array()
    style = _FLATTENED if style == _FLATTENED else _QUOTED
    count = sum(_write(item, steps, style, buffer) for item in value.items)
    if count:
        output.add(f"[{buffer.elements()}]" if count > 1 else buffer.elements())
    return count > 0

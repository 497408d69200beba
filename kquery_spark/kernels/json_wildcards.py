"""Values of a JSON document behind wildcards, written as GET_JSON_OBJECT writes them.

Spark follows Hive: two wildcards in a row flatten what is behind them, one keeps the nesting but for an array of a single
match, and behind an index every array stays one. An array in which nothing matches leaves ``[]`` behind where it
has been begun. The compiled loops of ``json_loops`` do the same for the usual strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kquery_spark.kernels.json_documents import Document, PrintDouble, is_null, written

EACH = -2
"""The step of a path to each element of an array; in the loops -1 is a name."""
_RAW, _QUOTED, _FLATTENED = 0, 1, 2  # styles of what is written: before a wildcard, behind one, behind two


def text_behind(document: Document, steps: Sequence[str | int], print_double: PrintDouble) -> str | None:
    """What a path with a wildcard finds as a text; None where it finds nothing."""
    output = _Output(print_double, " ", escapes_wide=True)
    return "".join(output.parts) if _write(document, steps, _RAW, output) else None


@dataclass
class _Output:
    """Values one after the other: those of an array, or those of the whole text, between which there is a blank."""

    print_double: PrintDouble
    separator: str
    escapes_wide: bool
    parts: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Write a value."""
        self.parts.append(self.separator + text if self.parts else text)

    def array(self) -> _Output:
        """An array in this output, to write its elements to."""
        return _Output(self.print_double, ",", self.escapes_wide)

    def buffer(self) -> _Output:
        """An array apart from this output, which is written as characters, not as bytes."""
        return _Output(self.print_double, ",", escapes_wide=False)

    def joined(self) -> str:
        """The elements of this array."""
        return "".join(self.parts)


def _write(value: Document, steps: Sequence[str | int], style: int, output: _Output) -> bool:
    """Write what the steps find in a value; whether they find anything."""
    if not steps:
        if value.kind == "array" and style == _FLATTENED:
            return sum(_write(item, steps, style, output) for item in value.items) > 0
        output.add(written(value, output.print_double, output.escapes_wide))
        return True
    step = steps[0]
    if value.kind == "array" and isinstance(step, int):
        return _write_elements(value, step, steps[1:], style, output)
    return value.kind == "object" and any(
        _write(item, steps[1:], style, output)
        for name, item in zip(value.names, value.items, strict=True)
        if name == step and not is_null(item)
    )


def _write_elements(
    value: Document, step: int, steps: Sequence[str | int], style: int, output: _Output
) -> bool:
    """Write what the steps find in one element of an array, or in each."""
    is_followed_by_each = bool(steps) and steps[0] == EACH
    if step != EACH:
        if step >= len(value.items):
            return False
        return _write(value.items[step], steps, _QUOTED if is_followed_by_each else style, output)
    if is_followed_by_each or style == _QUOTED:
        inner, rest = output.array(), steps[1:] if is_followed_by_each else steps
        style = _FLATTENED if is_followed_by_each else _QUOTED
        count = sum(_write(item, rest, style, inner) for item in value.items)
        output.add(f"[{inner.joined()}]")
        return count > 0
    buffer = output.buffer()
    style = _FLATTENED if style == _FLATTENED else _QUOTED
    count = sum(_write(item, steps, style, buffer) for item in value.items)
    if count:
        output.add(f"[{buffer.joined()}]" if count > 1 else buffer.joined())
    return count > 0

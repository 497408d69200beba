"""Parity cases over strings that are not valid UTF-8: every case of a function with a string column, with such values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from kquery_spark.errors import ExecutionError, Unsupported
from kquery_spark.expr import Column
from kquery_spark.kernels.utf8 import has_strings
from kquery_spark.kernels.utf8_string import character_bounds
from kquery_spark.physical.expr.program import Program
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch
from tests.functions import oracle, parity
from tests.functions.parity import Arg, Case, engine_type, forms, rows_of

if TYPE_CHECKING:
    from tests.functions.oracle import Answer

INVALID = (
    b"caf\xe9 au lait", b"caf\xe9", b"\xe9", b"\xe9t\xe9 ", b"\x80", b"a\xbfb", b"\xff\xfea", b"x\xffy", b"\xc3", b"ab\xc3", b"ab\xe2\x82", b"ab\xf0\x9f\x98", b"a\xf0\x9f\x98b",
    b"\xc0\xafa", b"\xe0\x80\xaf.", b"a\xed\xa0\xbd\xed\xb8\x80b", b"\xed\xa0", b"\xed\xa0x", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xf8\x88\x80\x80\x80", b"\x80 \x80", b" \xe9 ", b"a,\xe9,b",
    b"\xa9", b"\xc3\xa9\xe9", b"\xf0\x9f\x98\x80\xe9", b"1\xe9", b"12\xff", b"2020-01-01 \xe9", b'{"a": "\xe9"}', b"ABC\xe9abc",
)  # fmt: skip
"""Latin-1 letters, lone continuation bytes, cut characters, overlong forms, surrogates, bytes that UTF-8 does not use."""


def with_invalid_strings(case: Case, values: Sequence[bytes] = INVALID) -> Case | None:
    """The case with invalid strings among the values of its string columns; None if it has no such column."""
    if not any(isinstance(a, Arg) and has_strings(a.dtype) for a in case.args):
        return None
    if case.function == "reverse":  # Spark writes outside of the result's memory if the last character is cut
        values = [v for v in values if character_bounds(v)[-1] == len(v)]
    return replace(case, args=tuple(_with_invalid(a, values) if isinstance(a, Arg) else a for a in case.args))


def _with_invalid(arg: Arg, values: Sequence[bytes]) -> Arg:
    if not has_strings(arg.dtype):
        return arg
    changed = tuple(
        v for v in (_changed(arg.values[i % len(arg.values)], arg.dtype, b) for i, b in enumerate(values))
    )
    return replace(arg, values=(*arg.values[:3], *changed))


def _changed(value: Any, dtype: pa.DataType, string: bytes) -> Any:
    """The value with each of its strings replaced."""
    if dtype == t.STRING:
        return string
    if value is None:
        return None
    if pa.types.is_map(dtype):
        pairs = value.items() if isinstance(value, dict) else value
        return [
            (_changed(k, dtype.key_type, string), _changed(v, dtype.item_type, string)) for k, v in pairs
        ][:1]
    if pa.types.is_list(dtype):
        return [_changed(v, dtype.value_type, string) for v in value]
    if pa.types.is_struct(dtype):
        names = [dtype.field(i).name for i in range(dtype.num_fields)]
        if isinstance(value, dict):
            return {n: _changed(value[n], dtype.field(n).type, string) for n in names}
        return tuple(_changed(v, dtype.field(i).type, string) for i, v in enumerate(value))
    return value


def as_binary(dtype: pa.DataType) -> pa.DataType:
    """The type with binary instead of strings."""
    if dtype == t.STRING:
        return t.BINARY
    if pa.types.is_map(dtype):
        return pa.map_(as_binary(dtype.key_type), as_binary(dtype.item_type))
    if pa.types.is_list(dtype):
        return pa.list_(dtype.value_field.with_type(as_binary(dtype.value_type)))
    if pa.types.is_struct(dtype):
        return pa.struct(
            [dtype.field(i).with_type(as_binary(dtype.field(i).type)) for i in range(dtype.num_fields)]
        )
    return dtype


def _column_array(dtype: pa.DataType, values: Sequence[Any]) -> pa.Array:
    if not has_strings(dtype):
        return _usual_column_array(dtype, values)
    return pa.array([_encoded(v) for v in values], as_binary(dtype)).cast(dtype, safe=False)


def _encoded(value: Any) -> Any:
    """The value with its strings as bytes."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict):
        return {k: _encoded(v) for k, v in value.items()}
    return type(value)(map(_encoded, value)) if isinstance(value, list | tuple) else value


def _values_of(array: pa.Array) -> list[Any]:
    return _usual_values_of(array.cast(as_binary(array.type)) if has_strings(array.type) else array)


_usual_column_array, _usual_values_of = parity.column_array, parity.values_of


@contextmanager
def strings_as_bytes() -> Iterator[None]:
    """The harness writes and compares strings as bytes."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (parity, oracle):
            patch.setattr(module, "column_array", _column_array)
        patch.setattr(parity, "values_of", _values_of)
        yield


@dataclass
class Outcome:
    """How the engine's answers compare with Spark's: rows that both answered, rows that the engine declined, differences."""

    answered: int = 0
    declined: int = 0
    problems: list[str] = field(default_factory=list)


def compare(case: Case, answer: Answer, outcome: Outcome) -> None:
    """The engine's answers in each form that string columns have; where it declines all rows at once, row by row."""
    if answer.failure is not None:
        outcome.problems.append(answer.failure)
        return
    rows = rows_of(case)
    spark = parity.values_of(answer.values)
    raises = [error is not None for error in answer.errors]
    good = [k for k in range(len(rows)) if not raises[k]]
    for places in (good, *([k] for k in range(len(rows)) if raises[k])):
        for label, arrays in forms(case, [rows[k] for k in places]):
            _compare(case, outcome, label, places, arrays, rows, spark, raises)


def _compare(
    case: Case,
    outcome: Outcome,
    label: str,
    places: Sequence[int],
    arrays: Sequence[pa.Array],
    rows: Any,
    spark: list[Any],
    raises: list[bool],
) -> None:
    columns = [Column(f"a{j}", engine_type(a.dtype, case.tz)) for j, a in enumerate(case.columns)]
    schema = pa.schema([pa.field(c.name, c.dtype) for c in columns])
    try:
        batch = Batch(schema, tuple(arrays), len(places))
        (vector,) = Program([case.expr(columns)], schema).run(batch)
        ours = parity.values_of(vector.array(len(places)))
    except Unsupported:
        if len(places) > 1:
            for i, place in enumerate(places):
                single = [a.slice(i, 1) for a in arrays]
                _compare(case, outcome, label, [place], single, rows, spark, raises)
        else:
            outcome.declined += 1
        return
    except ExecutionError as error:
        if not any(raises[k] for k in places):
            outcome.problems.append(f"{label} raised {error}")
        return
    except Exception as error:
        outcome.problems.append(f"{label} failed: {type(error).__name__} {error}"[:200])
        return
    for place, value in zip(places, ours, strict=True):
        outcome.answered += 1
        if raises[place]:
            outcome.problems.append(f"{label} {rows[place]!r}: {value!r}, Spark raises")
        elif not parity.close(value, spark[place], vector.dtype, case.ulps, case.relative):
            outcome.problems.append(f"{label} {rows[place]!r}: {value!r}, Spark {spark[place]!r}")

"""Columns in their narrowest form: the same values come back, in the same physical form, and fewer bytes cross."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kquery_spark.stages.payload import decode_payload, encode
from kquery_spark.types.batch import Batch

ROWS = 3000  # more than are sent as they are
WIDE = pa.decimal128(38, 2)
TIMES = pa.timestamp("us", tz="UTC")


def _column(kind: pa.DataType, values: list[object], rows: int = ROWS) -> pa.Array:
    return pa.array([values[i * i % len(values)] for i in range(rows)], kind)


def _crossed(kind: pa.DataType, column: pa.Array) -> pa.Array:
    schema = pa.schema([("c", kind)])
    back = decode_payload(encode(Batch(schema, (column,), len(column))), schema)
    assert back.num_rows == len(column)
    back.columns[0].validate(full=True)
    return back.columns[0]


INTEGERS = {
    pa.int8(): [-128, 127, 0],
    pa.int16(): [-32768, 32767, 0],
    pa.int32(): [-(2**31), 2**31 - 1, 5],
    pa.int64(): [-(2**63), 2**63 - 1, 0],
}


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
@pytest.mark.parametrize("span", [0, 1, 255, 256, 65535, 65536, 2**32 - 1, 2**32])
@pytest.mark.parametrize("nulls", [False, True])
def test_integers_of_every_span_from_either_end(kind: pa.DataType, span: int, nulls: bool):
    lowest, highest, _ = INTEGERS[kind]
    span = min(span, highest - lowest)
    for low, high in ((lowest, lowest + span), (highest - span, highest)):
        column = _column(kind, [low, high, None] if nulls else [low, high])
        assert _crossed(kind, column).equals(column)


VALUES: list[tuple[pa.DataType, pa.DataType, list[object]]] = [
    (pa.bool_(), pa.bool_(), [True, False, None]),
    (pa.date32(), pa.date32(), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None]),
    (TIMES, TIMES, [datetime.datetime(1582, 10, 10, tzinfo=datetime.timezone.utc), None]),
    (pa.duration("us"), pa.duration("us"), [datetime.timedelta(days=-3), datetime.timedelta(microseconds=1)]),
    (pa.float64(), pa.float64(), [0.0, -0.0, float("inf"), None]),
    (WIDE, WIDE, [Decimal("-1.25"), Decimal("99.00"), None]),
    (WIDE, WIDE, [Decimal("7.00")]),
    (WIDE, WIDE, [Decimal("1e35"), Decimal("-1e35"), None]),
    (WIDE, WIDE, [Decimal("92233720368547758.07"), Decimal("-92233720368547758.08")]),
    (WIDE, pa.int64(), [-125, 9900, None]),
    (pa.string(), pa.string(), ["", "a", "é😀", None, "x" * 255]),
    (pa.string(), pa.string(), ["", "x" * 256]),
    (pa.string(), pa.string(), ["", "x" * 70_000]),
    (pa.string(), pa.string(), [""]),
    (pa.binary(), pa.binary(), [b"\x00", b"\xff\xfe", None]),
    (pa.string(), pa.dictionary(pa.int32(), pa.string()), ["a", "b", None]),
    (pa.list_(pa.int32()), pa.list_(pa.int32()), [[1, None], [], None]),
    (pa.null(), pa.null(), [None]),
]


@pytest.mark.parametrize(("kind", "physical", "values"), VALUES, ids=lambda v: str(v)[:40])
@pytest.mark.parametrize("offset", [0, 1, 13])
def test_other_columns_and_slices_of_them(
    kind: pa.DataType, physical: pa.DataType, values: list[object], offset: int
):
    column = _column(physical, values).slice(offset)
    back = _crossed(kind, column)
    assert back.type == physical
    assert back.equals(column)


@pytest.mark.parametrize("kind", [pa.string(), pa.int32(), pa.float64(), WIDE, pa.list_(pa.int8())], ids=str)
def test_nulls_alone(kind: pa.DataType):
    column = pa.nulls(ROWS, kind)
    assert _crossed(kind, column).equals(column)


def test_a_batch_of_several_strings_and_a_dictionary_of_many_values():
    schema = pa.schema([("a", pa.string()), ("n", pa.int64()), ("b", pa.string()), ("c", pa.string())])
    columns = (
        _column(pa.string(), ["one", None, "three"]),
        _column(pa.int64(), [1, 2, 3]),
        pa.array([f"v{i % 300}" for i in range(ROWS)]).dictionary_encode(),
        _column(pa.string(), ["", "last"]),
    )
    back = decode_payload(encode(Batch(schema, columns, ROWS)), schema)
    assert all(left.equals(right) for left, right in zip(back.columns, columns, strict=True))


@settings(max_examples=60)
@given(
    st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=40),
    st.integers(0, 70),
)
def test_any_integers(values: list[int | None], offset: int):
    column = _column(pa.int64(), list(values)).slice(offset)
    assert _crossed(pa.int64(), column).equals(column)


def test_fewer_bytes_cross():
    schema = pa.schema([("k", pa.int64()), ("one", pa.int64()), ("s", pa.string()), ("no", pa.float64())])
    numbers = np.arange(ROWS) % 200 + 10**12
    columns = (
        pa.array(numbers),
        pa.array(np.ones(ROWS, np.int64)),
        pa.array(["ab"] * ROWS),
        pa.nulls(ROWS, pa.float64()),
    )
    size = encode(Batch(schema, columns, ROWS)).size
    assert size < ROWS * (1 + 0 + 1 + 2) + 4000

"""Thrift's compact protocol: what is written is read again, what is skipped is skipped whole, and damage is an error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquery_spark.sources.parquet import thrift_compact as tc
from kquery_spark.sources.parquet.thrift_compact import Cursor

INTEGERS = st.integers(-(2**63), 2**63 - 1)
VALUES = st.one_of(
    INTEGERS.map(lambda n: (tc.I64, tc.integer(n))),
    st.binary(max_size=200).map(lambda b: (tc.BINARY, tc.binary(b))),
    st.lists(INTEGERS, max_size=20).map(lambda n: (tc.LIST, tc.listed(tc.I64, [tc.integer(x) for x in n]))),
    st.just((tc.TRUE, b"")),
    st.floats().map(lambda _: (tc.DOUBLE, bytes(8))),
    st.binary(max_size=20).map(lambda b: (tc.STRUCT, tc.struct([(3, tc.BINARY, tc.binary(b))]))),
)


@given(INTEGERS)
def test_integers(value):
    assert Cursor(tc.integer(value)).zigzag() == value


@given(st.lists(st.binary(max_size=30), max_size=40))
def test_lists(values):
    cursor = Cursor(tc.listed(tc.BINARY, [tc.binary(v) for v in values]))
    assert [cursor.binary() for _ in range(cursor.list_size())] == values
    assert cursor.at == len(cursor.data)


@given(st.lists(VALUES, max_size=20), st.lists(st.integers(1, 15), min_size=20, max_size=20))
def test_structs(values, steps):
    fields, last = [], 0
    for (kind, value), step in zip(values, steps, strict=False):
        last += step
        fields.append((last, kind, value))
    cursor = Cursor(tc.struct(fields))
    found = []
    for field, kind, at in cursor.fields():
        cursor.skip(kind)
        found.append((field, kind, cursor.data[at : cursor.at]))
    assert found == fields
    assert cursor.at == len(cursor.data)


def test_as_others_write_it():
    """The examples of thrift-compact-protocol.md: zigzag of small numbers, short and long headers."""
    assert [tc.integer(n) for n in (0, -1, 1, -2, 50399)] == [b"\0", b"\1", b"\2", b"\3", b"\xbe\x93\x06"]
    assert tc.struct([(1, tc.I32, tc.integer(1)), (3, tc.TRUE, b"")]) == b"\x15\x02\x21\x00"
    assert tc.listed(tc.I32, [b"\2"] * 15)[:2] == b"\xf5\x0f"
    # a distance above fifteen is not a part of the header: the id follows it
    assert next(Cursor(b"\x05\x28\x02\x00").fields())[:2] == (20, tc.I32)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x18\x05ab", b"\x1e"])
def test_what_ends_too_early_or_is_no_thrift(data):
    cursor = Cursor(data)
    with pytest.raises(ValueError, match="the footer"):
        for _, kind, _ in cursor.fields():
            cursor.skip(kind)

"""Conditions of a scan: which terms a dictionary decides, which terms remain, and the flags of a batch."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.expr import Call, Column, Expr, Literal
from kquery_spark.physical.row_conditions import RowConditions
from kquery_spark.types.batch import Batch

A, B = Column("a", pa.int64(), True), Column("b", pa.int64(), True)


def less(column: Column, value: int) -> Expr:
    return Call.of("lt", column, Literal(value, pa.int64()))


def batch(**columns: list[int | None]) -> Batch:
    arrays = tuple(pa.array(values, pa.int64()) for values in columns.values())
    return Batch(pa.schema([(name, pa.int64()) for name in columns]), arrays, len(arrays[0]))


def test_terms_of_one_column_are_decided_by_its_dictionary():
    both = Call.of("lt", A, B)
    conditions = RowConditions([Call.of("and", less(A, 9), less(B, 5)), both, less(A, 7)])
    assert conditions.columns == {"a", "b"}
    assert {name: c.terms for name, c in conditions.by_column.items()} == {
        "a": (less(A, 9), less(A, 7)),
        "b": (less(B, 5),),
    }
    assert conditions.without(frozenset("a")).terms == (less(B, 5), both)
    assert conditions.without(frozenset("ab")).terms == (both,)
    assert conditions.without(frozenset()).terms == (less(A, 9), less(B, 5), both, less(A, 7))


def test_rows_for_which_a_condition_is_null_do_not_pass():
    conditions = RowConditions([less(A, 3), less(B, 3)])
    values = batch(a=[1, 1, None, 5], b=[1, 5, 1, None])
    for _ in range(2):  # the second time with the cached program
        flags = conditions.flags(values)
        assert flags is not None
        assert flags.tolist() == [True, False, False, False]
    swapped = Batch(
        pa.schema([values.schema.field(1), values.schema.field(0)]), values.columns[::-1], values.num_rows
    )
    flags = conditions.flags(swapped)
    assert flags is not None
    assert flags.tolist() == [True, False, False, False]
    assert RowConditions([]).flags(values) is None

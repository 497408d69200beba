"""Hypothesis strategies that generate instances of every class of a plan from the types of its fields."""

from __future__ import annotations

import dataclasses
import types
import typing
from enum import Enum
from functools import cache
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from kquery_spark.expr import AggregateCall, Call, Column, Expr, Literal, WindowCall
from kquery_spark.functions.aggregate_registry import aggregate_functions
from kquery_spark.functions.registry import functions
from kquery_spark.logical import LogicalPlan
from kquery_spark.physical.operators import PhysicalPlan, ReadExec
from kquery_spark.sources.base import Source
from kquery_spark.stages.serializable import registry
from tests.stages.plans import DOUBLE, INT, LOGICAL, LONG, STRING, TABLE

TYPES = st.sampled_from(
    [
        pa.bool_(), pa.int8(), INT, LONG, DOUBLE, STRING, pa.binary(), pa.date32(), pa.null(),
        pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us"), pa.duration("us"), pa.decimal128(38, 18),
        pa.list_(pa.field("element", STRING, nullable=False)), pa.map_(STRING, LONG),
        pa.struct([pa.field("x", LONG, nullable=False), pa.field("y", pa.list_(DOUBLE))]),
        pa.dictionary(pa.int32(), STRING),
    ]
)  # fmt: skip
SCHEMAS = st.lists(TYPES, max_size=4).map(
    lambda column_types: pa.schema(
        [
            pa.field(f"c{i}", t, i % 2 == 0 or pa.types.is_null(t), {"k": "v"} if i else None)
            for i, t in enumerate(column_types)
        ]
    )
)
PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-(2**200), 2**200), st.floats(), st.binary(max_size=20),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20), st.decimals(), st.tuples(st.integers(), st.none()),
)  # fmt: skip
BASES: dict[type, list[type]] = {
    base: [c for c in registry().formats if issubclass(c, base)]
    for base in (Expr, LogicalPlan, PhysicalPlan, Source)
}


@cache
def values_of(annotation: Any, depth: int) -> st.SearchStrategy[Any]:
    """Return a strategy for values of an annotation; their expressions, plans, and sources nest at most ``depth`` deep."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is Any:
        return PLAIN
    if origin in (typing.Union, types.UnionType):
        return st.one_of([values_of(a, depth) for a in arguments])
    if origin is typing.Literal:
        return st.sampled_from(arguments)
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(values_of(arguments[0], depth), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*[values_of(a, depth) for a in arguments])
    simple: dict[Any, st.SearchStrategy[Any]] = {
        type(None): st.none(), bool: st.booleans(), int: st.integers(-(2**63), 2**63 - 1), float: st.floats(),
        str: st.text(st.characters(exclude_categories=["Cs"]), max_size=8), bytes: st.binary(max_size=8),
        pa.DataType: TYPES, pa.Schema: SCHEMAS, pa.Table: st.just(TABLE),
        LogicalPlan: st.sampled_from([LOGICAL[name] for name in sorted(LOGICAL)]),
    }  # fmt: skip
    if annotation in simple:
        return simple[annotation]
    if annotation in BASES:
        leaves = {Expr: [Column, Literal], PhysicalPlan: [ReadExec], Source: BASES[Source]}[annotation]
        return st.sampled_from(BASES[annotation] if depth > 0 else leaves).flatmap(
            lambda c: instances(c, depth - 1)
        )
    if issubclass(annotation, Enum):
        return st.sampled_from(list(annotation))
    return instances(annotation, depth)


@cache
def instances(cls: type, depth: int = 1) -> st.SearchStrategy[Any]:
    """Return a strategy for instances of a class; their fields nest at most ``depth`` deep."""
    if issubclass(cls, LogicalPlan):
        return st.just(LOGICAL[cls.__name__])
    hints = typing.get_type_hints(cls)
    field_values = {f.name: values_of(hints[f.name], depth) for f in dataclasses.fields(cls) if f.init}
    if cls is Call:
        field_values["function"] = st.sampled_from(sorted(functions()))
    if cls in (AggregateCall, WindowCall):
        field_values["function"] = st.sampled_from(sorted(aggregate_functions()))
    if "table" in field_values and hints["table"] is Any:
        field_values["table"] = st.just(TABLE)
    return st.builds(cls, **field_values)

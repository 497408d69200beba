"""Scans read those fields of shredded variants that the query looks at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Column, Expr, Literal
from kquery_spark.functions.variant_paths import parse_variant_path
from kquery_spark.logical import Aggregate, Filter, LogicalPlan, Projection, Scan
from kquery_spark.logical.plan import over
from kquery_spark.types import names as t

_NULL_TESTS = ("isnull", "isnotnull")

Fields = Mapping[str, frozenset[str]]
"""The fields that are looked at, of columns of variants of which not all are."""
Used = frozenset[str] | None
"""The fields of one column that are looked at; None if all may be."""


def variant_fields(plan: LogicalPlan) -> LogicalPlan:
    """``Projection: variant_get(#v, '$.a')`` over a scan of ``v`` makes the scan read no other field than ``a``."""
    return _narrow(plan, {})


def _narrow(plan: LogicalPlan, above: Fields) -> LogicalPlan:
    """The plan below nodes that look at some fields only of these columns."""

    def passed_on(column: str) -> list[Used]:
        return [above.get(column) if column in plan.column_names else frozenset(), *looked_at(column)]

    def looked_at(column: str) -> list[Used]:
        return [_used(expr, column) for expr in plan.expressions]

    def projected(column: str) -> list[Used]:
        assert isinstance(plan, Projection)
        return [
            above.get(e.name) if _is_column(e.expr, column) else _used(e.expr, column) for e in plan.exprs
        ]

    match plan:
        case Scan():
            fields = _fields(plan.source.schema, passed_on)
            return replace(plan, source=plan.source.with_variant_fields(fields)) if fields else plan
        case Projection():
            below = _fields(plan.child.schema, projected)
        case Aggregate():
            below = _fields(plan.child.schema, looked_at)
        case Filter():
            below = _fields(plan.child.schema, passed_on)
        case _:
            below = {}
    return over(plan, [_narrow(child, below) for child in plan.children])


def _fields(schema: pa.Schema, uses: Callable[[str], list[Used]]) -> Fields:
    fields = {}
    for name in (column.name for column in schema if column.type == t.VARIANT):
        used = uses(name)
        known = [names for names in used if names is not None]
        if len(known) == len(used):
            fields[name] = frozenset[str]().union(*known)
    return fields


def _used(expr: Expr, column: str) -> Used:
    """The fields of a column that an expression looks at."""
    if isinstance(expr, Column):
        return None if expr.name == column else frozenset()
    if isinstance(expr, Call) and expr.children and _is_column(expr.children[0], column):
        if expr.function in _NULL_TESTS:
            return frozenset()
        return _field_of_path(expr) if expr.function == "variant_get" else None
    used = [_used(child, column) for child in expr.children]
    known = [names for names in used if names is not None]
    return frozenset[str]().union(*known) if len(known) == len(used) else None


def _is_column(expr: Expr, column: str) -> bool:
    return isinstance(expr, Column) and expr.name == column


def _field_of_path(get: Call) -> Used:
    path = get.children[1]
    if not isinstance(path, Literal):
        return None
    try:
        steps = parse_variant_path(path.value)
    except Unsupported:
        return None
    return frozenset({steps[0]}) if steps and isinstance(steps[0], str) else None

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
        copies = [e.name for e in plan.exprs if isinstance(e.expr, Column) and e.expr.name == column]
        others = [_used(e.expr, column) for e in plan.exprs if e.name not in copies]
        return [*map(above.get, copies), *others]

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
    match expr:
        case Column(name=name):
            return None if name == column else frozenset()
        case Call(function="isnull" | "isnotnull", args=(Column(),)):
            return frozenset()
        case Call(function="variant_get", args=(Column(name=name), path, *_)) if name == column:
            return _first_field(path)
    used = [_used(child, column) for child in expr.children]
    known = [names for names in used if names is not None]
    return frozenset[str]().union(*known) if len(known) == len(used) else None


def _first_field(path: Expr) -> Used:
    """The field that a constant path begins with."""
    if not isinstance(path, Literal):
        return None
    try:
        steps = parse_variant_path(path.value)
    except Unsupported:
        return None
    return frozenset({steps[0]}) if steps and isinstance(steps[0], str) else None

"""Scans read only the fields of shredded variants that the query needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Column, Expr, Literal
from kquery_spark.functions.variant_paths import parse_variant_path
from kquery_spark.logical import Aggregate, Filter, LogicalPlan, Projection, Scan
from kquery_spark.logical.plan import with_new_children
from kquery_spark.types import names as t

Needed = frozenset[str] | None
"""The fields of one variant that are needed; None for all of them."""
NeededFields = Mapping[str, frozenset[str]]
"""The fields that are needed by column, without the columns of which all are."""


def variant_field_pruning(plan: LogicalPlan) -> LogicalPlan:
    """``Projection: variant_get(#v, '$.a')`` over a scan of ``v`` makes the scan read no other field than ``a``."""
    return _prune(plan, {})


def _prune(plan: LogicalPlan, above: NeededFields) -> LogicalPlan:
    """The plan with pruned scans. above: what the nodes above need of its output."""
    if isinstance(plan, Scan):
        fields = _fields(plan, plan.source.schema, above)
        return replace(plan, source=plan.source.with_variant_fields(fields)) if fields else plan
    is_followed = isinstance(plan, Projection | Aggregate | Filter)
    return with_new_children(
        plan,
        [_prune(c, _fields(plan, c.schema, above) if is_followed else {}) for c in plan.children],
    )


def _fields(plan: LogicalPlan, schema: pa.Schema, above: NeededFields) -> NeededFields:
    """What a node and those above it need of the columns that it reads."""
    columns = [column.name for column in schema if column.type == t.VARIANT]
    needed = {column: _together(_needs(plan, column, above)) for column in columns}
    return {column: fields for column, fields in needed.items() if fields is not None}


def _needs(plan: LogicalPlan, column: str, above: NeededFields) -> list[Needed]:
    if isinstance(plan, Projection):
        copies = [e.name for e in plan.exprs if isinstance(e.expr, Column) and e.expr.name == column]
        return [*map(above.get, copies), *(_of(e.expr, column) for e in plan.exprs if e.name not in copies)]
    own = [_of(expr, column) for expr in plan.expressions]
    passes_on = not isinstance(plan, Aggregate) and column in plan.column_names
    return [*own, above.get(column)] if passes_on else own


def _of(expr: Expr, column: str) -> Needed:
    """The fields of a column that an expression needs."""
    match expr:
        case Column(name=name):
            return None if name == column else frozenset()
        case Call(function="isnull" | "isnotnull", args=(Column(),)):
            return frozenset()
        case Call(function="variant_get", args=(Column(name=name), path, *_)) if name == column:
            return _first_field(path)
    return _together([_of(child, column) for child in expr.children])


def _together(needs: list[Needed]) -> Needed:
    known = [fields for fields in needs if fields is not None]
    return frozenset[str]().union(*known) if len(known) == len(needs) else None


def _first_field(path: Expr) -> Needed:
    """The field that a constant path begins with."""
    if not isinstance(path, Literal):
        return None
    try:
        steps = parse_variant_path(path.value)
    except Unsupported:
        return None
    return frozenset({steps[0]}) if steps and isinstance(steps[0], str) else None

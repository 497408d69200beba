"""Makes scans read only those fields of shredded variants that the query needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Column, Expr, Literal
from kquery_spark.functions.registry import Function
from kquery_spark.functions.sql_form import Logic
from kquery_spark.functions.variant.paths import parse_variant_path
from kquery_spark.logical import Aggregate, Filter, LogicalPlan, Projection, Scan
from kquery_spark.logical.plan import with_new_children
from kquery_spark.types import names as t

RequiredFields = frozenset[str] | None
"""The top-level fields of one variant column that are required; None if all of them are."""
FieldsByColumn = Mapping[str, frozenset[str]]
"""The required fields of each variant column. A column that is missing here requires all of its fields."""


def variant_field_pruning(plan: LogicalPlan) -> LogicalPlan:
    """Make a scan of ``v`` below ``Projection: variant_get(#v, '$.a')`` read only the field ``a``.

    The rule walks down with the required fields, through projections, filters and aggregates. Below any other node, all
    fields are required.
    """
    return _prune(plan, {})


def _prune(plan: LogicalPlan, above: FieldsByColumn) -> LogicalPlan:
    """Prune the scans of a plan. above: the fields of its output columns that the nodes above require."""
    if isinstance(plan, Scan):
        fields = _fields(plan, plan.source.schema, above)
        return replace(plan, source=plan.source.with_variant_fields(fields)) if fields else plan
    # Other nodes may pass the whole variant on, so nothing is pruned below them.
    is_followed = isinstance(plan, Projection | Aggregate | Filter)
    return with_new_children(
        plan,
        [_prune(c, _fields(plan, c.schema, above) if is_followed else {}) for c in plan.children],
    )


def _fields(plan: LogicalPlan, schema: pa.Schema, above: FieldsByColumn) -> FieldsByColumn:
    """Return the fields of the input columns in ``schema`` that the node and the nodes above it require."""
    columns = [column.name for column in schema if column.type == t.VARIANT]
    required = {column: _union(_requirements(plan, column, above)) for column in columns}
    return {column: fields for column, fields in required.items() if fields is not None}


def _requirements(plan: LogicalPlan, column: str, above: FieldsByColumn) -> list[RequiredFields]:
    """Return the fields of an input column that each expression of the node and the nodes above require."""
    # A plain copy of the column requires what the nodes above require of the copy. Computed columns require what they read.
    if isinstance(plan, Projection):
        copies = [e.name for e in plan.exprs if isinstance(e.expr, Column) and e.expr.name == column]
        computed = [e.expr for e in plan.exprs if e.name not in copies]
        return [*map(above.get, copies), *(_fields_read(expr, column) for expr in computed)]
    own = [_fields_read(expr, column) for expr in plan.expressions]
    passes_on = not isinstance(plan, Aggregate) and column in plan.column_names
    return [*own, above.get(column)] if passes_on else own


def _fields_read(expr: Expr, column: str) -> RequiredFields:
    """Return the fields of a column that an expression reads."""
    match expr:
        case Column(name=name):
            return None if name == column else frozenset()
        case Call(logic=Logic.IS_NULL | Logic.IS_NOT_NULL, args=(Column(),)):
            return frozenset()
        case Call(entry=Function(reads_path=True), args=(Column(name=name), path, *_)) if name == column:
            return _first_field(path)
    return _union([_fields_read(child, column) for child in expr.children])


def _union(requirements: list[RequiredFields]) -> RequiredFields:
    known = [fields for fields in requirements if fields is not None]
    return frozenset[str]().union(*known) if len(known) == len(requirements) else None


def _first_field(path: Expr) -> RequiredFields:
    """Return the field that a constant path starts with; None (all fields) for other paths."""
    if not isinstance(path, Literal):
        return None
    try:
        steps = parse_variant_path(path.value)
    except Unsupported:
        return None
    return frozenset({steps[0]}) if steps and isinstance(steps[0], str) else None

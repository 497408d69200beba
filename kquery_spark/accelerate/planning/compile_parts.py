"""The compile step: optimizes and compiles the chosen subtrees to stages."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from kquery_spark.accelerate.planning.import_subtrees import (
    DeclinedNode,
    ImportedPlan,
    ImportedSubtree,
    import_children,
)
from kquery_spark.accelerate.planning.part import Part
from kquery_spark.compiler.compiled_plans import compile_once
from kquery_spark.compiler.placement import IN_ANY_ORDER, IN_TASK_ORDER
from kquery_spark.config.cost import CostModel
from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.plans.context import Declined
from kquery_spark.logical import Input, LogicalPlan, walk_plan
from kquery_spark.logical.projection import with_output
from kquery_spark.types import names as t
from kquery_spark.types.spark_json import MONTHS_WITHIN


@dataclass(frozen=True)
class CompiledParts:
    """The parts that the engine can run, and why other nodes fall back to Spark, in the order of the search."""

    parts: tuple[Part, ...]
    declined: tuple[DeclinedNode, ...]


def compile_parts(plan: ImportedPlan, config: EngineConfig, costs: CostModel) -> CompiledParts:
    """Compile each imported subtree.

    Some conditions can be checked only after compilation, such as the number of rows that each task sorts. If a subtree
    violates one, its root falls back to Spark with the reason, and the subtrees below the root are imported and compiled
    instead.
    """
    parts: list[Part] = []
    declined: list[DeclinedNode] = []
    stack = list(reversed(plan.found))
    while stack:
        found = stack.pop()
        if not isinstance(found, ImportedSubtree):
            declined.append(found)
            continue
        try:
            parts.append(_compile_subtree(found, config, costs))
            below = found.below
        except Unsupported as refused:
            declined.append((found.node, refused.reason))
            try:
                below = import_children(plan, found)
            except Declined as whole:
                return CompiledParts((), ((whole.node, whole.reason),))
        stack += reversed(below)
    return CompiledParts(tuple(parts), tuple(declined))


def _compile_subtree(subtree: ImportedSubtree, config: EngineConfig, costs: CostModel) -> Part:
    """Compile an imported subtree.

    Raises Unsupported if a rule or an operator declines it, if its rows cannot be passed to Spark, or if one task would sort
    too many rows.
    """
    position, imported = subtree.position, subtree.imported
    placement = IN_TASK_ORDER if position == () else IN_ANY_ORDER
    query = compile_once(with_output(imported.plan, imported.output), config, placement)
    _check_crossing(query.optimized)
    tasks, rows = len(query.graph.result.tasks), query.estimate.rows
    if query.is_ordered and rows > config.sort_rows * tasks:
        where = "one task" if tasks == 1 else f"{tasks} tasks"
        raise Unsupported(f"sorting about {rows:,.0f} rows in {where} exceeds spark.kquery.sortRows")
    return Part(position, subtree.node, imported, query, costs)


def _check_crossing(plan: LogicalPlan) -> None:
    """Raise Unsupported if rows of these types cannot be passed between Spark and the engine.

    Java's Arrow reads only one of two struct fields with the same name. Spark converts year-month intervals as columns, but
    not inside of nested types. Variants do not leave the engine.
    """
    crossing = (plan, *(n for n in walk_plan(plan) if isinstance(n, Input)))
    for field in (field for node in crossing for field in node.schema):
        if t.has_variants(field.type):
            raise Unsupported(
                f"column {field.name} is a variant, and results with variants are not supported"
            )
        if t.has_months_within(field.type):
            raise Unsupported(MONTHS_WITHIN)
        if (name := _repeated_name(field.type)) is not None:
            raise Unsupported(
                f"column {field.name} has a struct with two fields named {name}, which Spark and Arrow cannot exchange"
            )


def _repeated_name(dtype: pa.DataType) -> str | None:
    """Return a name that two fields of a struct within the type share, or None."""
    fields = [dtype.field(i) for i in range(dtype.num_fields)]
    names = [f.name for f in fields]
    own = [name for i, name in enumerate(names) if name in names[:i]]
    below = (_repeated_name(f.type) for f in fields)
    return own[0] if own else next((name for name in below if name is not None), None)

"""The output of an imported subtree: a plan and its columns by Catalyst's expression ids.

Spark copies subtrees, above all for semi-joins, so the same expression id may refer to different rows in two places of a
plan. Therefore expression ids are mapped per subtree. The engine's column names are unique in the whole import, so a name
identifies a column in all nodes. A Project that only renames or selects columns needs no node in the engine's plan: it is
another scope of the same plan, and the optimizer's column pruning removes unused columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from kquery_spark.cached_property import cached_property
from kquery_spark.errors import Unsupported
from kquery_spark.expr import Column, Named
from kquery_spark.kernels.ordered_bytes import can_order
from kquery_spark.logical import LogicalPlan, Projection
from kquery_spark.types.names import is_nested, spark_name


@dataclass(frozen=True)
class PlanScope:
    """An engine plan, and its output columns in Spark's order as pairs of expression id and engine name.

    hidden: columns of the plan that are not part of the output, with ids of their own (``file_columns.py``).
    """

    plan: LogicalPlan
    output: tuple[tuple[int, str], ...]
    hidden: tuple[tuple[int, str], ...] = ()

    @cached_property
    def columns(self) -> dict[int, Column]:
        """The output columns, and hidden ones, by expression id."""
        schema = self.plan.schema
        by_id: dict[int, Column] = {}
        for expr_id, name in (*self.output, *self.hidden):
            if expr_id not in by_id:
                field = schema.field(name)
                by_id[expr_id] = Column(name, field.type, field.nullable)
        return by_id

    def names(self) -> tuple[str, ...]:
        """Engine names in Spark's output order; a name may repeat."""
        return tuple(name for _, name in self.output)

    def with_plan(self, plan: LogicalPlan) -> PlanScope:
        """Return the scope with another plan that has the same columns."""
        return PlanScope(plan, self.output)

    def filtered(self, plan: LogicalPlan) -> PlanScope:
        """Return the scope, with hidden columns, for a plan that has a subset of the rows."""
        return PlanScope(plan, self.output, self.hidden)


def exactly(scope: PlanScope, names: Iterable[str]) -> LogicalPlan:
    """Project the scope's plan to these columns in this order."""
    output_names = list(names)
    if scope.plan.schema.names == output_names:
        return scope.plan
    return Projection(scope.plan, tuple(Named(scope.plan.column(name), name) for name in output_names))


def same_type(a: pa.DataType, b: pa.DataType) -> bool:
    """Return whether two types are the same to Spark, apart from the nullability of nested elements."""
    return bool(a == b) or (is_nested(a) and spark_name(a) == spark_name(b))


def check_key(dtype: pa.DataType) -> None:
    """Raise Unsupported for a type by which the engine cannot group, join or sort."""
    if not can_order(dtype):
        raise Unsupported(f"grouping, joining or sorting by {spark_name(dtype)} values is not supported")

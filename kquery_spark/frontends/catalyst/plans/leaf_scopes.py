"""Builds the scope of a scan: the columns of a leaf that the query reads, with names that are unique in the query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Named
from kquery_spark.frontends.catalyst.plans.context import Context
from kquery_spark.frontends.catalyst.scope import PlanScope
from kquery_spark.logical import LogicalPlan, Projection, Scan
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.spark_bridge.relations.leaves import OtherRelation

R = TypeVar("R")


def read_relation(node: CatalystNode, context: Context, kind: type[R]) -> R:
    """Read a leaf's relation; raises Unsupported with the reason if it is not of the class ``kind``."""
    relation = context.relations.read(node)
    if isinstance(relation, OtherRelation):
        raise Unsupported(relation.reason)
    if not isinstance(relation, kind):
        raise Unsupported(f"{node.cls} is not supported")
    return relation


def columns_read(node: CatalystNode, context: Context) -> list[tuple[int, str]]:
    """The ids and names of a leaf's columns that are read."""
    return [(a["exprId"], a["name"]) for a in node.trees("output") if context.required(node, a)]


def leaf_scope(
    scan: Scan,
    columns: list[tuple[int, str]],
    context: Context,
    hidden: Mapping[int, str] = MappingProxyType({}),
) -> PlanScope:
    """The scope of a scan of some columns, given by ids and names; the scope's names are unique in the query."""
    read = columns + list(hidden.items())
    plan: LogicalPlan = replace(scan, projection=tuple(dict.fromkeys(column for _, column in read)))
    output, renamed = [], []
    for expr_id, column in read:
        name = context.names.fresh(column)
        output.append((expr_id, name))
        renamed.append(Named(plan.column(column), name))
    if any(named.name != named.expr.default_alias for named in renamed):
        plan = Projection(plan, tuple(renamed))
    return PlanScope(plan, tuple(output[: len(columns)]), tuple(output[len(columns) :]))

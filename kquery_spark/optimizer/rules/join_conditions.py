"""Moves the filter above an inner join into the join, as keys and as its condition."""

from __future__ import annotations

from dataclasses import replace
from itertools import filterfalse

from kquery_spark.expr import Expr, columns_of
from kquery_spark.expr.properties import conjunction, conjuncts, is_pure
from kquery_spark.logical import Filter, Join, JoinKind, LogicalPlan, transform_plan
from kquery_spark.logical.conditions import split_condition
from kquery_spark.logical.filter import with_filter


def join_conditions(plan: LogicalPlan) -> LogicalPlan:
    """Turn ``Filter: a.x = b.y`` over ``a CROSS JOIN b`` into ``a JOIN b ON a.x = b.y``.

    Other terms that read both sides become the join's residual condition. A term that can raise stays above the join, where
    it sees the same rows as before.
    """
    return transform_plan(plan, _merge)


def _merge(node: LogicalPlan) -> LogicalPlan:
    if not (isinstance(node, Filter) and isinstance(node.child, Join) and node.child.kind is JoinKind.INNER):
        return node
    join = node.child
    # Equalities between the sides become keys. Other terms are evaluated for each pair with matching keys.
    keys, residual = split_condition(node.condition, join.left.schema.names, join.right.schema.names)
    joining = list(filter(_can_be_join_condition, residual))
    if not keys and not joining:
        return node
    added = tuple(k for k in keys if k not in join.keys)
    condition = conjunction(conjuncts(join.condition) + joining)
    merged = replace(join, keys=join.keys + added, condition=condition)
    return with_filter(merged, list(filterfalse(_can_be_join_condition, residual)))


def _can_be_join_condition(term: Expr) -> bool:
    """True if a join can evaluate the term, possibly for pairs of rows that the filter would not have seen."""
    return bool(columns_of(term)) and is_pure(term)

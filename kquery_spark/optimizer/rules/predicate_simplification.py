"""Rewrites all conditions of a plan in the normal form that other rules expect."""

from __future__ import annotations

from kquery_spark.logical import LogicalPlan, transform_plan
from kquery_spark.optimizer.normal_conditions import normalize_node


def predicate_simplification(plan: LogicalPlan) -> LogicalPlan:
    """Turn ``(#a = #b AND #x) OR (#a = #b AND #y)`` into ``#a = #b AND (#x OR #y)``, so that ``#a = #b`` can become a key.

    The rule also negates comparisons below NOT, removes double negations and repeated terms, merges equalities with one
    column into an IN, and removes filters that are always true. Terms that can raise stay where they are. Decorrelation
    uses the same normal form; see ``normal_conditions``.
    """
    return transform_plan(plan, normalize_node)

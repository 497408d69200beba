"""Splits Filter and inner Join: moves terms that the engine can evaluate below those that fall back to Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kquery_spark.frontends.catalyst.plans.projections import conjunct_nodes
from kquery_spark.frontends.catalyst.splits.expressible import Expressible, attributes
from kquery_spark.frontends.catalyst.splits.split import SPLITS
from kquery_spark.spark_bridge.plan.plan_builder import PlanBuilder
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode

_EQUALITIES = frozenset({"EqualTo", "EqualNullSafe"})


@SPLITS.handles("Filter")
def split_filter(
    node: CatalystNode, children: Sequence[Any], expressible: Expressible, builder: PlanBuilder
) -> Any | None:
    """``declined AND x`` over rows becomes ``declined`` over ``x`` over rows.

    A term moves below one that falls back to Spark only if it raises no error: Spark may have evaluated it for fewer rows.
    """
    terms = conjunct_nodes(node.tree("condition"))
    below, above = _split_terms(terms, expressible, builder)
    if not below or not above:
        return None
    lower = builder.filter([builder.node(term) for term in below], children[0])
    return builder.filter([builder.node(term) for term in above], lower)


@SPLITS.handles("Join")
def split_join(
    node: CatalystNode, children: Sequence[Any], expressible: Expressible, builder: PlanBuilder
) -> Any | None:
    """An inner join ON ``a = b AND declined`` becomes a filter above a join ON ``a = b``; Spark matches keys first, too."""
    if node["joinType"] not in ("Inner", "Cross") or "condition" not in node.fields:
        return None
    terms = conjunct_nodes(node.tree("condition"))
    keys = [term for term in terms if _is_key(term) and not expressible.declines(term)]
    below, above = _split_terms([term for term in terms if term not in keys], expressible, builder)
    if not keys or not above:
        return None
    joined = builder.join(node, children, [builder.node(term) for term in [*keys, *below]])
    return builder.filter([builder.node(term) for term in above], joined)


def _split_terms(
    terms: Sequence[CatalystNode], expressible: Expressible, builder: PlanBuilder
) -> tuple[list[CatalystNode], list[CatalystNode]]:
    """Divide terms into those that the engine may evaluate first and the others, both in their original order."""
    below: list[CatalystNode] = []
    above: list[CatalystNode] = []
    for term in terms:
        early = not expressible.declines(term) and (
            not above or (expressible.is_infallible(term) and all(map(builder.is_deterministic, above)))
        )
        (below if early else above).append(term)
    return below, above


def _is_key(term: CatalystNode) -> bool:
    """Return whether a term of an inner join is an equality of both sides; Spark has pushed down terms of one side."""
    return term.cls in _EQUALITIES and all(attributes(side) for side in term.children)

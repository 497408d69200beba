"""Catalyst plan nodes as engine plans, by family."""

from kquery_spark.frontends.catalyst.plans import (
    aggregates,
    declined,
    joins,
    limits,
    projections,
    relations,
    setops,
    sorts,
)
from kquery_spark.frontends.catalyst.plans.context import PLANS, Context, Handover

__all__ = [
    "PLANS",
    "Context",
    "Handover",
    "aggregates",
    "declined",
    "joins",
    "limits",
    "projections",
    "relations",
    "setops",
    "sorts",
]

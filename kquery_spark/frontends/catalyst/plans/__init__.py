"""Catalyst plan nodes as engine plans, by family."""

from kquery_spark.frontends.catalyst.plans import (
    aggregates,
    declined,
    generators,
    joins,
    limits,
    projections,
    python_cogroups,
    python_functions,
    python_table_functions,
    python_tables,
    recursion,
    relations,
    setops,
    sorts,
    windows,
)
from kquery_spark.frontends.catalyst.plans.context import PLANS, Context, Handover

__all__ = [
    "PLANS",
    "Context",
    "Handover",
    "aggregates",
    "declined",
    "generators",
    "joins",
    "limits",
    "projections",
    "python_cogroups",
    "python_functions",
    "python_table_functions",
    "python_tables",
    "recursion",
    "relations",
    "setops",
    "sorts",
    "windows",
]

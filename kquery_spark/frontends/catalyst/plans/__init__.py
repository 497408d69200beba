"""Imports Catalyst plan nodes as engine plans, with a module per family."""

from kquery_spark.frontends.catalyst.plans import (  # noqa: F401  each module registers its handlers
    aggregates,
    declined,
    file_relations,
    generators,
    iceberg_relations,
    inline_relations,
    joins,
    limits,
    projections,
    python_cogroups,
    python_functions,
    python_table_functions,
    python_tables,
    recursion,
    setops,
    sorts,
    windows,
)
from kquery_spark.frontends.catalyst.plans.context import PLANS, Context, Handover

__all__ = ["PLANS", "Context", "Handover"]

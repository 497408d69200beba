"""Finds the expressions of a query that the engine declines, with reasons, from the plan and without running it."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.frontends.catalyst.plans.context import Context
from kquery_spark.frontends.catalyst.required_columns import RequiredColumns
from kquery_spark.logical.node_map import NodeMap
from kquery_spark.spark_bridge.plan.plan_facts import Facts
from kquery_spark.spark_bridge.relations.leaves import RelationReader
from kquery_spark.spark_bridge.session.bridge import get_bridge
from kquery_spark.spark_bridge.session.settings import session_settings


def declined_columns(spark: SparkSession, plan: Any) -> dict[int, str]:
    """Return the columns of an optimized ``SELECT`` that the engine declines, as reasons by position.

    Later steps than the import of the plan can decline further columns.
    """
    bridge = get_bridge(spark)
    settings = session_settings(bridge.conf, bridge.jvm)
    facts = Facts(bridge.jvm, plan)
    root = facts.parse()
    relations = RelationReader(
        facts, bridge.jvm, settings.time_zone, bridge.hadoop_configuration, bridge.zones
    )
    context = Context(facts, relations, settings, NodeMap(), RequiredColumns.collect(root))
    columns = context.subtree(root.children[0]).columns
    reasons = {}
    for position, column in enumerate(root.trees("projectList")):
        try:
            context.translator(columns)(column)
        except Unsupported as error:
            reasons[position] = error.reason
        except (PlanError, RecursionError) as error:
            reasons[position] = str(error)
    return reasons

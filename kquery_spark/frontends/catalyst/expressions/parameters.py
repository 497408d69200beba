"""Checks the parameters of Catalyst expressions that are not arguments against the values that an entry supports."""

from __future__ import annotations

from kquery_spark.errors import Unsupported
from kquery_spark.functions.registry import CatalystParameters
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode


def check_parameters(node: CatalystNode, parameters: CatalystParameters, function: str) -> tuple[str, ...]:
    """Return the names of the checked parameters; raises Unsupported if a parameter has an unsupported value."""
    for name, value in parameters.fixed:
        if name in node.fields and node[name] != value:
            raise Unsupported(f"{function} with {name} = {node[name]} is not supported")
    return (*(name for name, _ in parameters.fixed), *parameters.ignored)

"""Parameters of Catalyst expressions that are not arguments: what each must be for the registry's function."""

from __future__ import annotations

from kquery_spark.errors import Unsupported
from kquery_spark.functions.registry import CatalystParameters
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode


def check_parameters(node: CatalystNode, parameters: CatalystParameters, function: str) -> tuple[str, ...]:
    """The parameters that are accounted for; raises Unsupported for a ``function`` with another value of one."""
    for name, value in parameters.fixed:
        if name in node.fields and node[name] != value:
            raise Unsupported(f"{function} with {name} = {node[name]} is not supported")
    return (*(name for name, _ in parameters.fixed), *parameters.ignored)

"""Parameters of Catalyst expressions that are no arguments: what each must be for the registry's function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kquery_spark.errors import Unsupported
from kquery_spark.spark_bridge.plan_tree import CatalystNode

# The only value with which the engine's function is Spark's.
FIXED: Mapping[str, Mapping[str, Any]] = {
    "Size": {"legacySizeOfNull": False},
    "Murmur3Hash": {"seed": 42},
    "XxHash64": {"seed": 42},
    "SubtractDates": {"legacyInterval": False},
    "SubtractTimestamps": {"legacyInterval": False},
    "Unhex": {"failOnError": False},
    "UnBase64": {"failOnError": False},
}

# Parameters that decide nothing: the type of an empty array is that of an array without elements anyway.
# What a parser suggests is part of a message only; dataType is the type of the result, which handlers see to.
IGNORED: Mapping[str, frozenset[str]] = {
    "CreateArray": frozenset({"useStringTypeWhenEmpty"}),
    "GetTimestamp": frozenset({"suggestedFuncOnFail", "dataType"}),
    "UnixTimestamp": frozenset({"suggestedFuncOnFail"}),
    "ToUnixTimestamp": frozenset({"suggestedFuncOnFail"}),
    "MakeTimestamp": frozenset({"dataType"}),
    "TimestampAdd": frozenset({"unit"}),
    "TimestampDiff": frozenset({"unit"}),
}

# Where failOnError = false gives NULL instead of Java's wrapped-around number.
NULL_IF_NOT_FAILING = frozenset({"GetArrayItem", "ElementAt"})


def check_parameters(node: CatalystNode) -> frozenset[str]:
    """The parameters that are accounted for; raises Unsupported for one with another value than wanted."""
    fixed = FIXED.get(node.cls, {})
    for name, wanted in fixed.items():
        if name in node.fields and node[name] != wanted:
            raise Unsupported(f"{node.cls} with {name} = {node[name]} stays with Spark")
    return frozenset(fixed) | IGNORED.get(node.cls, frozenset())

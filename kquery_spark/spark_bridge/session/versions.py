"""The supported versions of Spark, and the differences between their plans, classes and private names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from kquery_spark.errors import Unsupported

Version = tuple[int, int]
"""Major and minor number of a release."""


@dataclass(frozen=True)
class SparkApi:
    """Names and constructors of Spark's JVM classes that differ by version.

    dataset: the class with ``ofRows``. map_in_arrow: the plan node of ``mapInArrow``; takes_resource_profile: whether its
    constructor takes one. direct_partition_ids: whether a shuffle can send a row to the partition that a column names
    (``DirectShufflePartitionID``). session_tags: whether sessions have job tags of their own (``interruptAll``).
    """

    dataset: str
    map_in_arrow: str
    takes_resource_profile: bool
    direct_partition_ids: bool
    session_tags: bool


_PLANS = "org.apache.spark.sql.catalyst.plans.logical."
_SPARK_4_1 = SparkApi("org.apache.spark.sql.classic.Dataset", f"{_PLANS}MapInArrow", True, True, True)
_SPARK_4_0 = replace(_SPARK_4_1, direct_partition_ids=False)
_APIS: Mapping[Version, SparkApi] = MappingProxyType(
    {
        (3, 5): SparkApi(
            "org.apache.spark.sql.Dataset",
            f"{_PLANS}PythonMapInArrow",
            takes_resource_profile=False,
            direct_partition_ids=False,
            session_tags=False,
        ),
        (4, 0): _SPARK_4_0,
        (4, 1): _SPARK_4_1,
        (4, 2): _SPARK_4_1,
        (4, 3): _SPARK_4_1,
    }
)
SUPPORTED = tuple(f"{major}.{minor}" for major, minor in _APIS)
"""Minor versions that the test suite passes with, oldest first."""
# Databricks' runtimes have numbers of their own: https://docs.databricks.com/aws/en/release-notes/runtime
_DATABRICKS: Mapping[int, Version] = MappingProxyType(
    {13: (3, 4), 14: (3, 5), 15: (3, 5), 16: (3, 5), 17: (4, 0)}
)
_RELEASE = re.compile(r"(\d+)\.(\d+)")
_PATCH = re.compile(r"\d+\.\d+\.(\d+)")
_DATABRICKS_RUNTIME = re.compile(r"(\d{2})\.(\w+)\b.*scala")


def minor_version(text: str) -> Version | None:
    """The release of a version, without a vendor's additions (``3.5.2-amzn-1``, ``4.0.0.dev0``, ``15.4.x-scala2.12``).

    None for strings that are not a version.
    """
    if runtime := _DATABRICKS_RUNTIME.match(text):
        return _DATABRICKS.get(int(runtime[1]), (int(runtime[1]), 0))
    release = _RELEASE.match(text)
    return None if release is None else (int(release[1]), int(release[2]))


def patch_version(text: str) -> tuple[int, int, int] | None:
    """Like ``minor_version``, with the patch number; 0 if the vendor has its own numbering or specifies none."""
    minor = minor_version(text)
    if minor is None:
        return None
    patch = _PATCH.match(text)
    return (*minor, int(patch[1]) if patch and not _DATABRICKS_RUNTIME.match(text) else 0)


def spark_api(version: str) -> SparkApi:
    """Return the names and features of a version of Spark; raises Unsupported for an unknown version."""
    minor = minor_version(version)
    api = None if minor is None else _APIS.get(minor)
    if api is None:
        raise Unsupported(
            f"kquery_spark knows Spark {SUPPORTED[0]} to {SUPPORTED[-1]}, and this session runs {version}"
        )
    return api

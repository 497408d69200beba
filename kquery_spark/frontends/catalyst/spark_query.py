"""SparkQuery: a Spark DataFrame as the engine reads it, with everything that importing its plan needs.

``kquery_plan`` and the open plans of a context read Spark's queries in this way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.importer import Imported, Importer
from kquery_spark.frontends.catalyst.splits import SplitPlan
from kquery_spark.logical.node_map import NodeMap
from kquery_spark.sources.base import Source
from kquery_spark.spark_bridge.plan.plan_facts import Facts
from kquery_spark.spark_bridge.python.functions import PythonFunctions
from kquery_spark.spark_bridge.relations.catalog_snapshot import SparkPlan
from kquery_spark.spark_bridge.relations.leaves import RelationReader
from kquery_spark.spark_bridge.session.bridge import Bridge
from kquery_spark.spark_bridge.session.settings import SessionSettings, session_settings


@dataclass(frozen=True)
class SparkQuery:
    """Spark's optimized plan of a DataFrame, and the session's settings that affect its meaning.

    plan: Spark's plan with the snapshots of the catalog's and Delta's tables that it reads. tree: the same plan as a tree.
    workers_have_hdfs_client: returns True if Spark's workers can read from HDFS; called only if the plan reads from HDFS.
    sources: the sources of the plan's relations, shared by all imports of the query.
    """

    bridge: Bridge
    config: EngineConfig
    settings: SessionSettings
    plan: SparkPlan
    tree: SplitPlan
    workers_have_hdfs_client: Callable[[], bool]
    sources: NodeMap[Source] = field(default_factory=NodeMap)

    @classmethod
    def parse(
        cls,
        plan: SparkPlan,
        bridge: Bridge,
        config: EngineConfig,
        workers_have_hdfs_client: Callable[[], bool],
    ) -> SparkQuery:
        """Parse Spark's plan. Raises Unsupported if the plan's JSON cannot be read."""
        settings = session_settings(bridge.conf, bridge.jvm)
        facts = Facts(bridge.jvm, plan.optimized)
        tree = SplitPlan(plan.optimized, facts, facts.parse())
        return cls(bridge, config, settings, plan, tree, workers_have_hdfs_client)

    def import_whole(self) -> Imported:
        """Import the query from its root. Raises Unsupported if Spark has to run the root or the whole query."""
        importer = self.importer(self.tree)
        declined = importer.declined_query(self.tree.root)
        if declined is not None:
            raise Unsupported(declined[1])
        return importer.import_plan(self.tree.root)

    def importer(self, tree: SplitPlan) -> Importer:
        """Return an importer of subtrees of the query's tree, or of the same tree with nodes split."""
        relations = RelationReader(
            tree.facts,
            self.bridge.jvm,
            self.settings.time_zone,
            self.bridge.hadoop_configuration,
            self.bridge.zones,
            self.plan.delta_snapshots,
            self.workers_have_hdfs_client,
            self.config.parallelism,
        )
        functions = PythonFunctions(tree.facts, self.bridge)
        return Importer(tree.facts, relations, self.settings, self.sources, functions)

"""Access to the JVM side of a Spark session: plans, settings, DataFrames of parts of plans, and plans with replaced nodes.

A ``Bridge`` is created once per session and caches everything that does not change during the life of the session.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kquery_spark.config.cost import CostModel
from kquery_spark.config.engine import PREFIX, EngineConfig
from kquery_spark.config.tolerant import read_tolerantly, unknown_settings
from kquery_spark.errors import ConfigWarning, KQueryError, type_name
from kquery_spark.sources.request_limit import limit_requests
from kquery_spark.spark_bridge.frames.pyspark_names import ClassicDataFrame
from kquery_spark.spark_bridge.jvm.calls import Jvm
from kquery_spark.spark_bridge.session.failures import warn_user
from kquery_spark.spark_bridge.session.hybrid_zones import HybridZones
from kquery_spark.spark_bridge.session.interpreter import is_local
from kquery_spark.spark_bridge.session.settings import EXCLUDED_RULES_SETTING, session_values
from kquery_spark.spark_bridge.session.versions import spark_api
from kquery_spark.spark_bridge.ui.call_sites import name_by_user_code

_SQL_CONF = "org.apache.spark.sql.internal.SQLConf"
_FOLDING = "constant_folding"
"""The engine's rule that is also switched off if one of these Spark rules is, as each can prevent an error."""
_FOLDING_RULES = (
    *("ConstantFolding", "NullPropagation", "BooleanSimplification", "SimplifyConditionals"),
    "SimplifyCaseConversionExpressions",
)
_QUERY_EXECUTION = "org.apache.spark.sql.execution.QueryExecution"
# Scala's mangled name of the private method ``nextExecutionId``.
_NEXT_NUMBER = f"{_QUERY_EXECUTION}$$nextExecutionId".replace(".", "$")
_SETTINGS = (*EngineConfig().setting_names(), *CostModel().settings())
_ENGINE_SETTING_NAME = re.compile(rf"(?<=[\[ ]){re.escape(PREFIX)}[^,\]]*")  # in the string of a Java set
_identities: weakref.WeakKeyDictionary[SparkSession, str] = weakref.WeakKeyDictionary()
_bridges: weakref.WeakKeyDictionary[SparkSession, Bridge] = weakref.WeakKeyDictionary()


class Bridge:
    """The JVM side of one session; ``get_bridge`` creates it. ``frames_made`` counts the DataFrames that it has created.

    api: the names that depend on the version of Spark. zones: the rules for old times in files.
    last_config: the engine's settings at the last read, or None.
    has_workers: whether an action of this session ran in Python workers, which later ones may reuse.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = weakref.ref(spark)
        self.jvm = Jvm(spark.sparkContext._gateway)
        self.api = spark_api(self.jvm.spark_version)
        name_by_user_code()  # after spark_api, which raises an error on an unsupported release
        self.gateway: Any = spark.sparkContext._gateway
        self.zones = HybridZones(self.jvm)
        self.frames_made = 0
        self._conf: Any = None
        self.last_config: EngineConfig | None = None
        self.has_workers = False
        self._cores = spark.sparkContext.defaultParallelism
        self._cluster: Any = None if is_local(spark.sparkContext) else spark.sparkContext._jsc.sc()
        self._warned: set[str] = set()
        self._names: Any = None  # the key set of the session's settings, a live view
        self._checked_names_hash = 0  # the hash of the names that were last checked for mistakes

    @property
    def spark(self) -> SparkSession:
        """The session."""
        spark = self._spark()
        assert spark is not None
        return spark

    @property
    def conf(self) -> Any:
        """The session's SQLConf, which never changes during the life of the session."""
        if self._conf is None:
            self._conf = self.spark._jsparkSession.sessionState().conf()
        return self._conf

    def config(self) -> EngineConfig:
        """Read the engine's current settings (``spark.kquery.*``); parallelism is that of the cluster unless it is set."""
        return self.config_and_costs()[0]

    def config_and_costs(self) -> tuple[EngineConfig, CostModel]:
        """Read the engine's settings and the cost model (``spark.kquery.cost.*``) with one JVM call.

        On a cluster, another call returns the current number of cores. A setting with an invalid value keeps its default,
        and the user gets one ConfigWarning.
        """
        *values, excluded = session_values(
            self.conf, self.jvm, (*_SETTINGS, EXCLUDED_RULES_SETTING), unset=""
        )
        given = {name: value for name, value in zip(_SETTINGS, values, strict=True) if value != ""}
        cores, costs = self._parallelism(), CostModel()
        config = (
            EngineConfig.for_local_master(cores) if self._cluster is None else EngineConfig(parallelism=cores)
        )
        problems = self._unknown_settings()
        if given:
            read = read_tolerantly(given, config, costs)
            config, costs = read.config, read.costs
            problems += read.problems
        for problem in problems:
            if self.warns_first_time(problem):
                warn_user(problem, ConfigWarning)
        if any(rule in str(excluded) for rule in _FOLDING_RULES):
            config = replace(config, disabled_rules=(*config.disabled_rules, _FOLDING))
        self.last_config = config
        limit_requests(config.request_seconds)  # planning reads footers, and the driver may run tasks
        return config, costs

    def _parallelism(self) -> int:
        """Return Spark's default parallelism; for a cluster, the largest one that the session has seen.

        Executors of a cluster register late. Dynamic allocation removes idle ones, and requests new ones for pending tasks.
        """
        if self._cluster is not None and not is_stopped(self.spark):
            self._cores = max(self._cores, int(self._cluster.defaultParallelism()))
        return self._cores

    def _unknown_settings(self) -> list[str]:
        """Return warnings about misspelled settings; checked only if the names of settings have changed."""
        if self._names is None:
            self._names = self.conf.settings().keySet()
        names = int(self._names.hashCode())
        if names == self._checked_names_hash:
            return []
        self._checked_names_hash = names
        return unknown_settings(_ENGINE_SETTING_NAME.findall(str(self._names.toString())))

    def hadoop_configuration(self) -> Any:
        """Return Hadoop's configuration, with the session's settings in it."""
        return self.spark._jsparkSession.sessionState().newHadoopConf()

    def warns_first_time(self, message: str) -> bool:
        """True once for each message of the session."""
        known = message in self._warned
        self._warned.add(message)
        return not known

    def command_executed(self, frame: DataFrame) -> Any:
        """Return Spark's analyzed plan of a DataFrame, with the results of commands in place of the commands.

        Spark executes a command (INSERT, SHOW TABLES) when its DataFrame is created. A DataFrame of a plan that still has
        the command would execute it again.
        """
        return frame._jdf.queryExecution().commandExecuted()

    def optimized(self, frame: DataFrame) -> Any:
        """Return Spark's optimized plan of a DataFrame, which Spark caches."""
        return frame._jdf.queryExecution().optimizedPlan()

    def optimized_without(self, frame: DataFrame, rule: str) -> Any:
        """Return the optimized plan of a DataFrame that Spark has not planned yet, without one of the optimizer's rules.

        rule: the name of its class. The setting that excludes the rule applies to this thread and this plan only.
        """
        conf = self.jvm.new(_SQL_CONF)
        conf.settings().putAll(self.conf.settings())
        excluded = str(self.conf.getConfString(EXCLUDED_RULES_SETTING, ""))
        conf.setConfString(EXCLUDED_RULES_SETTING, ",".join(filter(None, (excluded, rule))))
        plan = self.jvm.supplier(frame._jdf.queryExecution(), _QUERY_EXECUTION, "optimizedPlan")
        return self.jvm.call(_SQL_CONF, "withExistingConf", conf, plan)

    def next_query_number(self) -> int:
        """Return the number that Spark gives to a new query; it counts all queries and commands of its JVM."""
        return int(self.jvm.call(f"{_QUERY_EXECUTION}$", _NEXT_NUMBER))

    def frame(self, plan: Any) -> DataFrame:
        """Return a DataFrame of an optimized Catalyst plan, or of a plan that consists of parts of one.

        The plan is marked as analyzed. Analyzing it again would take time, and could fail, as the optimizer produces plans
        that the analyzer rejects (for example a row_number whose constant order was removed).
        """
        self.frames_made += 1
        plan.setAnalyzed()
        rows = self.jvm.call(self.api.dataset, "ofRows", self.spark._jsparkSession, plan)
        return ClassicDataFrame(rows, self.spark)

    def columns(self, plan: Any, positions: Sequence[int]) -> Any:
        """Return a Catalyst plan that projects some output columns of another plan."""
        names = self.jvm.mutable_sequence(*map(plan.output().apply, positions)).toIndexedSeq()
        return self.gateway.jvm.org.apache.spark.sql.catalyst.plans.logical.Project(names, plan)

    def replaced(self, root: Any, replacements: Mapping[tuple[int, ...], DataFrame]) -> Any:
        """Replace the nodes at some positions by DataFrames with the same columns and expression ids.

        A position is the list of child indexes from the root.
        """
        return self._replace(root, (), replacements)

    def _replace(
        self, node: Any, at: tuple[int, ...], replacements: Mapping[tuple[int, ...], DataFrame]
    ) -> Any:
        frame = replacements.get(at)
        if frame is not None:
            return self.command_executed(frame)
        below = [p for p in replacements if p[: len(at)] == at]
        if not below:
            return node
        children = node.children()
        replaced = (self._replace(children.apply(i), (*at, i), replacements) for i in range(children.size()))
        return node.withNewChildren(self.jvm.mutable_sequence(*replaced).toIndexedSeq())


def session_identity(spark: SparkSession) -> str:
    """Return an identity of the JVM session, which PySpark may wrap in several objects."""
    identity = _identities.get(spark)
    if identity is None:
        identity = _identities[spark] = str(spark._jsparkSession.sessionUUID())
    return identity


def same_plan(one: DataFrame, other: DataFrame) -> bool:
    """Return whether two DataFrames have the same JVM object."""
    return one._jdf is other._jdf


_CONNECT_MODULE = "pyspark.sql.connect"
_CONNECT = (
    "kquery_spark needs a classic Spark session: it reads Spark's optimized plan from the JVM, which a Spark "
    "Connect session does not offer. Start the session without remote(), or run the query on Spark alone."
)


def check_frame(frame: object, caller: str) -> None:
    """Raise KQueryError unless ``frame`` is a DataFrame of a classic session."""
    if type(frame).__module__.startswith(_CONNECT_MODULE):
        raise KQueryError(_CONNECT)
    if not isinstance(frame, DataFrame):
        hint = "; spark.createDataFrame(...) makes one" if type_name(frame) == "pandas.DataFrame" else ""
        raise KQueryError(f"{caller} takes a Spark DataFrame, not {type_name(frame)}{hint}")


def is_stopped(spark: SparkSession) -> bool:
    """Return whether ``stop`` ended the session's context. Its DataFrames raise errors from then on."""
    return spark.sparkContext._jsc is None


def check_session(spark: object) -> None:
    """Raise KQueryError unless ``spark`` is a classic session."""
    if not hasattr(spark, "_jsparkSession"):
        if type(spark).__module__.startswith(_CONNECT_MODULE):
            raise KQueryError(_CONNECT)
        raise KQueryError(f"kquery_spark takes a Spark session here, not {type_name(spark)}")


def get_bridge(spark: SparkSession) -> Bridge:
    """Return the bridge of a session, created once.

    Raises KQueryError for a Spark Connect session, which has no JVM, for one that was stopped before it had a bridge, and
    for an unsupported version of Spark.
    """
    check_session(spark)
    bridge = _bridges.get(spark)
    if bridge is None:
        if is_stopped(spark):
            raise KQueryError(
                "this Spark session has been stopped; create a new one with SparkSession.builder.getOrCreate()"
            )
        bridge = _bridges[spark] = Bridge(spark)
    return bridge

"""What the session needs of Spark's JVM: optimized plans, settings, DataFrames of sub-plans, substitution."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import KQueryError
from kquery_spark.frontends.catalyst.jvm import Jvm
from kquery_spark.frontends.catalyst.settings import session_values

_SETTINGS = tuple(EngineConfig().setting_names())
_bridges: weakref.WeakKeyDictionary[SparkSession, Bridge] = weakref.WeakKeyDictionary()


class Bridge:
    """One session's JVM side; make it with ``bridge``. ``frames_made`` counts the DataFrames that it made."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = weakref.ref(spark)
        self.jvm = Jvm(spark.sparkContext._gateway)
        self.gateway: Any = spark.sparkContext._gateway
        self.frames_made = 0
        self._conf: Any = None
        self._parallelism = spark.sparkContext.defaultParallelism
        self._warned: set[str] = set()

    @property
    def spark(self) -> SparkSession:
        """The session."""
        spark = self._spark()
        assert spark is not None
        return spark

    @property
    def conf(self) -> Any:
        """The session's SQLConf, which is one and the same for all of its life."""
        if self._conf is None:
            self._conf = self.spark._jsparkSession.sessionState().conf()
        return self._conf

    def config(self) -> EngineConfig:
        """The engine's settings as ``spark.kquery.*`` says now; parallelism is the cluster's unless set."""
        values = session_values(self.conf, self.jvm, _SETTINGS, unset="")
        given = {name: value for name, value in zip(_SETTINGS, values, strict=True) if value != ""}
        base = EngineConfig(parallelism=self._parallelism)
        return base.with_settings(given) if given else base

    def warns_first_time(self, message: str) -> bool:
        """True once for each message of the session."""
        known = message in self._warned
        self._warned.add(message)
        return not known

    def frame(self, plan: Any) -> DataFrame:
        """A DataFrame of an optimized Catalyst plan or of one made of parts of it.

        It is marked as analyzed: the optimizer leaves behind what the analyzer would not let through (a
        row_number whose constant order is gone, say), and to analyze it again takes time.
        """
        self.frames_made += 1
        plan.setAnalyzed()
        dataset = self.gateway.jvm.org.apache.spark.sql.classic.Dataset
        return DataFrame(dataset.ofRows(self.spark._jsparkSession, plan), self.spark)

    def _objects(self, count: int) -> Any:
        return self.gateway.new_array(self.gateway.jvm.java.lang.Object, count)

    def _sequence(self, array: Any) -> Any:
        return self.gateway.jvm.scala.Predef.wrapRefArray(array).toIndexedSeq()

    def columns(self, plan: Any, positions: Sequence[int]) -> Any:
        """A Catalyst plan of some of another's output columns."""
        output = plan.output()
        array = self._objects(len(positions))
        for i, position in enumerate(positions):
            array[i] = output.apply(position)
        names = self._sequence(array)
        return self.gateway.jvm.org.apache.spark.sql.catalyst.plans.logical.Project(names, plan)

    def replaced(self, root: Any, replacements: Mapping[tuple[int, ...], DataFrame]) -> Any:
        """The plan with the nodes at some positions replaced by DataFrames of the same columns and expression ids.

        A position is the child indexes from the root.
        """
        return self._replace(root, (), replacements)

    def _replace(
        self, node: Any, at: tuple[int, ...], replacements: Mapping[tuple[int, ...], DataFrame]
    ) -> Any:
        frame = replacements.get(at)
        if frame is not None:
            return frame._jdf.queryExecution().analyzed()
        below = [p for p in replacements if p[: len(at)] == at]
        if not below:
            return node
        children = node.children()
        count = children.size()
        array = self._objects(count)
        for i in range(count):
            array[i] = self._replace(children.apply(i), (*at, i), replacements)
        return node.withNewChildren(self._sequence(array))


_CONNECT = (
    "kquery_spark needs a classic Spark session: it reads Spark's optimized plan from the JVM, which a Spark "
    "Connect session does not offer. Start the session without remote(), or run the query on Spark alone."
)


def check_frame(frame: object, caller: str) -> None:
    """Raise KQueryError for what is not a DataFrame of a classic session."""
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        raise KQueryError(_CONNECT)
    if not isinstance(frame, DataFrame):
        raise KQueryError(f"{caller} takes a Spark DataFrame, not {type(frame).__name__}")


def bridge(spark: SparkSession) -> Bridge:
    """The bridge of a session, made once; KQueryError for a Spark Connect session, which has no JVM to ask."""
    if not hasattr(spark, "_jsparkSession"):
        raise KQueryError(_CONNECT)
    found = _bridges.get(spark)
    if found is None:
        found = _bridges[spark] = Bridge(spark)
    return found

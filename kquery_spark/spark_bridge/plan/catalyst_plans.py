"""Spark's plan of a stage graph, assembled from Spark's own nodes.

The public way, a DataFrame for each of ``range``, ``mapInArrow``, ``union`` and ``repartitionById``, makes Spark analyze
the plan so far at every step and asks the JVM the same things for every stage: most of the time that planning took.
What is made here is what those methods make; it has types and expression ids from the start, so there is nothing
left to analyze.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from kquery_spark.spark_bridge.frames.pyspark_names import (
    ClassicDataFrame,
    PythonEvalType,
)
from kquery_spark.spark_bridge.session.bridge import Bridge
from kquery_spark.spark_bridge.session.containers import container_facts
from kquery_spark.spark_bridge.session.interpreter import interpreter_of

ArrowFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What ``mapInArrow`` takes."""


class SharedBytes(Protocol):
    """Bytes that Spark delivers to each executor once, beside the tasks."""

    @property
    def value(self) -> bytes:
        """The bytes, in a worker."""


@runtime_checkable
class DivisibleTask(Protocol):
    """A task that can be sent in two parts."""

    def with_shared_part(self, share: Callable[[bytes], SharedBytes]) -> ArrowFunction:
        """The task whose large part is shared. That part has no secrets, as Spark writes it to files."""


STAGE_FUNCTION = "kquery "
"""How the names of the engine's own functions begin in Spark's plans; no name of a Python function has a space."""
_SQL = "org.apache.spark.sql."
_PLANS = f"{_SQL}catalyst.plans.logical."
_EXPRESSIONS = f"{_SQL}catalyst.expressions."
_FUNCTION = "org.apache.spark.api.python.SimplePythonFunction"
NO_BROADCASTS: Mapping[int, Any] = MappingProxyType({})
_MAX_COMMAND_BYTES = 1 << 20  # as in PySpark, which broadcasts longer commands


class SparkPlans:
    """Makes nodes of Catalyst plans in one session; all have names, types and ids, as after analysis.

    broadcasts: the JVM's broadcast variables that functions of the user's may refer to, by id.
    """

    def __init__(self, link: Bridge, broadcasts: Mapping[int, Any] = NO_BROADCASTS) -> None:
        self._spark = link.spark
        self._jvm = link.jvm
        self._api = link.api
        self._broadcasts = broadcasts
        self.container = container_facts(link.spark.sparkContext)

    def numbers(self, count: int) -> Any:
        """``spark.range(0, count, 1, count)``: one number a partition."""
        return self._jvm.call(f"{_PLANS}Range$", "apply", 0, count, 1, count)

    def of(self, frame: DataFrame) -> Any:
        """The plan of a DataFrame."""
        return frame._jdf.queryExecution().analyzed()

    def attributes(self, schema: StructType) -> Any:
        """New attributes, each with an expression id of its own."""
        data_type = self._jvm.data_type(schema.jsonValue())
        return self._jvm.call(f"{_SQL}catalyst.types.DataTypeUtils", "toAttributes", data_type)

    def mapped(
        self,
        child: Any,
        task: ArrowFunction,
        schema: StructType,
        output: Any,
        name: str,
        for_functions: bool = False,
        broadcasts: Iterable[int] = (),
    ) -> Any:
        """``child.mapInArrow(task, schema)``; ``output``: the attributes of the schema.

        name: of the task in Spark's plans and its UI. for_functions: whether the task calls functions of the user's, which
        it does in workers of their own. broadcasts: ids of the variables that these refer to, which Spark then delivers to
        the workers.
        """
        jvm = self._jvm
        function = jvm.new(
            f"{_EXPRESSIONS}PythonUDF",
            name,
            self._function(task, schema, for_functions, broadcasts),
            jvm.data_type(schema.jsonValue()),
            child.output(),
            PythonEvalType.SQL_MAP_ARROW_ITER_UDF,
            True,
            jvm.call(f"{_EXPRESSIONS}NamedExpression", "newExprId"),
        )
        profile = [jvm.none()] if self._api.takes_resource_profile else []
        return jvm.new(self._api.map_in_arrow, function, output, child, False, *profile)

    def union(self, children: Sequence[Any]) -> Any:
        """All rows of plans with the same columns."""
        if len(children) == 1:
            return children[0]
        return self._jvm.new(f"{_PLANS}Union", self._jvm.sequence(children), False, False)

    def repartitioned(self, child: Any, count: int, position: int) -> Any:
        """The rows by the column at a position: numbers of partitions, or keys that hash to them if ``hash_partitioned``."""
        jvm = self._jvm
        column = child.output().apply(position)
        if not self.hash_partitioned:
            column = jvm.new(f"{_EXPRESSIONS}DirectShufflePartitionID", column)
        return jvm.new(
            f"{_PLANS}RepartitionByExpression", jvm.sequence([column]), child, jvm.some(count), jvm.none()
        )

    @property
    def hash_partitioned(self) -> bool:
        """Whether Spark sends a row to the partition that a column hashes to, as it cannot be told the partition."""
        return not self._api.direct_partition_ids

    def renamed(self, plan: Any, output: Any, converted: Sequence[int] = ()) -> Any:
        """A plan under a projection that gives its columns the names and expression ids of ``output``.

        converted: the positions of columns that also get another type, one with the same values in the JVM.
        """
        jvm, new = self._jvm, plan.output()
        items = []
        for i in range(output.size()):
            old, column = output.apply(i), new.apply(i)
            if i in converted:
                types = column.dataType(), old.dataType()
                column = jvm.new(f"{_EXPRESSIONS}PreciseTimestampConversion", column, *types)
            arguments = column, old.name(), old.exprId(), jvm.empty(), jvm.none(), jvm.empty()
            items.append(jvm.new(f"{_EXPRESSIONS}Alias", *arguments))
        return jvm.new(f"{_PLANS}Project", jvm.sequence(items), plan)

    def frame(self, plan: Any) -> DataFrame:
        """The lazy DataFrame of a plan."""
        return self._frame(plan, self._spark._jsparkSession)

    def frame_of_large_rows(self, plan: Any) -> DataFrame:
        """The lazy DataFrame of a plan whose rows take megabytes: each comes to the driver as an Arrow batch of its own.

        Spark puts ten thousand rows into a batch, whatever they take. It reads that setting when it runs the plan, so the
        plan belongs to a copy of the session.
        """
        session = self._spark._jsparkSession.cloneSession()
        session.conf().set("spark.sql.execution.arrow.maxRecordsPerBatch", "1")
        return self._frame(plan, session)

    def _frame(self, plan: Any, session: Any) -> DataFrame:
        plan.setAnalyzed()
        return ClassicDataFrame(self._jvm.call(self._api.dataset, "ofRows", session, plan), self._spark)

    def _function(
        self, task: ArrowFunction, schema: StructType, for_functions: bool, broadcasts: Iterable[int]
    ) -> Any:
        """The task as the JVM keeps Python functions."""
        context = self._spark.sparkContext
        interpreter = interpreter_of(context)
        pickler: Any = CloudPickleSerializer
        command, shared = pickler().dumps((task, schema)), list[Any]()
        if len(command) >= _MAX_COMMAND_BYTES and isinstance(task, DivisibleTask):

            def share(data: bytes) -> SharedBytes:
                broadcast = context.broadcast(data)
                shared.append(broadcast._jbroadcast)
                return broadcast

            command = pickler().dumps((task.with_shared_part(share), schema))
            # pickling notes each broadcast there, for PySpark to deliver it with its own next function
            context._pickled_broadcast_vars.clear()
        environment = interpreter.environment_with(context.environment, for_functions)
        includes: list[str] = context._python_includes or []
        return self._jvm.new(
            _FUNCTION,
            bytearray(command),
            self._jvm.java_dict(environment),
            self._jvm.java_list(includes),
            interpreter.executable,
            context.pythonVer,
            self._jvm.java_list([*shared, *(self._broadcasts[variable] for variable in broadcasts)]),
            context._javaAccumulator,
        )

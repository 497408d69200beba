"""Builds the Spark plan of a stage graph directly from Catalyst nodes.

The public way would be a DataFrame for each ``range``, ``mapInArrow``, ``union`` and ``repartitionById``. Then Spark would
analyze the whole plan again at every step, with many JVM calls per stage, which took most of the planning time. This module
builds the same nodes as these methods. They have types and expression ids from the start, so Spark need not analyze them.
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
"""The type of the function that ``mapInArrow`` takes."""


class SharedBytes(Protocol):
    """Bytes that Spark sends to each executor once, separately from the tasks: a broadcast variable."""

    @property
    def value(self) -> bytes:
        """The bytes, as seen by a worker."""


@runtime_checkable
class DivisibleTask(Protocol):
    """A task that can be sent in two parts."""

    def with_shared_part(self, share: Callable[[bytes], SharedBytes]) -> ArrowFunction:
        """Return the task with its large part shared. That part must not contain secrets, as Spark writes it to files."""


STAGE_FUNCTION = "kquery "
"""The prefix of the names of the engine's functions in Spark's plans. Names of users' functions never have a space."""
_SQL = "org.apache.spark.sql."
_PLANS = f"{_SQL}catalyst.plans.logical."
_EXPRESSIONS = f"{_SQL}catalyst.expressions."
_FUNCTION = "org.apache.spark.api.python.SimplePythonFunction"
NO_BROADCASTS: Mapping[int, Any] = MappingProxyType({})
_MAX_COMMAND_BYTES = 1 << 20  # as in PySpark, which broadcasts longer commands


class StagePlanBuilder:
    """Builds nodes of Catalyst plans for one session. All nodes have names, types and ids, as after analysis.

    broadcasts: the JVM's broadcast variables that users' functions may refer to, by id.
    """

    def __init__(self, bridge: Bridge, broadcasts: Mapping[int, Any] = NO_BROADCASTS) -> None:
        self._spark = bridge.spark
        self._jvm = bridge.jvm
        self._api = bridge.api
        self._broadcasts = broadcasts
        self.container = container_facts(bridge.spark.sparkContext)

    def numbers(self, count: int) -> Any:
        """Build ``spark.range(0, count, 1, count)``, which has one number per partition."""
        return self._jvm.call(f"{_PLANS}Range$", "apply", 0, count, 1, count)

    def plan_of(self, frame: DataFrame) -> Any:
        """Return the analyzed plan of a DataFrame."""
        return frame._jdf.queryExecution().analyzed()

    def attributes(self, schema: StructType) -> Any:
        """Create attributes for a schema, each with a new expression id."""
        data_type = self._jvm.data_type(schema.jsonValue())
        return self._jvm.call(f"{_SQL}catalyst.types.DataTypeUtils", "toAttributes", data_type)

    def map_in_arrow(
        self,
        child: Any,
        task: ArrowFunction,
        schema: StructType,
        output: Any,
        name: str,
        for_functions: bool = False,
        broadcasts: Iterable[int] = (),
    ) -> Any:
        """Build ``child.mapInArrow(task, schema)``.

        output: the attributes of the schema. name: the name of the task in Spark's plans and its UI. for_functions: whether
        the task calls users' functions, which run in separate workers. broadcasts: the ids of the broadcast variables that
        these functions refer to, so that Spark sends them to the workers.
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
        """Build a UNION ALL of plans with the same columns."""
        if len(children) == 1:
            return children[0]
        return self._jvm.new(f"{_PLANS}Union", self._jvm.sequence(children), False, False)

    def repartition(self, child: Any, count: int, position: int) -> Any:
        """Build an exchange that sends each row to the partition which the column at ``position`` determines.

        The column contains partition numbers, or, if ``hash_partitioned``, keys whose hashes are these numbers.
        """
        jvm = self._jvm
        column = child.output().apply(position)
        if not self.hash_partitioned:
            column = jvm.new(f"{_EXPRESSIONS}DirectShufflePartitionID", column)
        return jvm.new(
            f"{_PLANS}RepartitionByExpression", jvm.sequence([column]), child, jvm.some(count), jvm.none()
        )

    @property
    def hash_partitioned(self) -> bool:
        """True for releases of Spark that can only partition by the hash of a column, not by a partition number."""
        return not self._api.direct_partition_ids

    def rename_columns(self, plan: Any, output: Any, converted: Sequence[int] = ()) -> Any:
        """Add a projection that gives the columns of a plan the names and expression ids of ``output``.

        converted: the positions of columns whose type also changes, to one that has the same values in the JVM.
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
        """Return a lazy DataFrame of a plan."""
        return self._frame(plan, self._spark._jsparkSession)

    def frame_of_large_rows(self, plan: Any) -> DataFrame:
        """Return a lazy DataFrame of a plan with rows of megabytes; each row is sent to the driver as one Arrow batch.

        By default Spark puts ten thousand rows into a batch, whatever their size. It reads that setting when it runs the
        plan, so the DataFrame belongs to a copy of the session with another value.
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
        """Wrap a task in the JVM's representation of Python functions; a large task is sent as a broadcast variable."""
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
            # Pickling registers each broadcast there, and PySpark would attach it to its own next function.
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
            self._jvm.list_of_objects([*shared, *(self._broadcasts[variable] for variable in broadcasts)]),
            context._javaAccumulator,
        )

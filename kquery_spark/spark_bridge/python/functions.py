"""Python functions in Spark's plans: reads their code, checks their environment, builds the engine's evaluation."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from kquery_spark.config.environment import WORKER_INTERPRETER
from kquery_spark.errors import Unsupported
from kquery_spark.spark_bridge.plan.catalyst_plans import STAGE_FUNCTION
from kquery_spark.spark_bridge.plan.plan_facts import Facts
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.spark_bridge.python.call import PythonCall, PythonFunction
from kquery_spark.spark_bridge.python.evaluation import (
    BatchesEvaluation,
    CogroupsEvaluation,
    GroupsEvaluation,
    PythonEvaluation,
)
from kquery_spark.spark_bridge.python.kinds import (
    BATCHED_TABLE,
    PICKLED_TABLE,
    PythonKind,
    kind_of,
    type_over_windows,
)
from kquery_spark.spark_bridge.python.pickled_values import PICKLED, Pickling, has_maps, is_picklable
from kquery_spark.spark_bridge.python.streams import counts_groups
from kquery_spark.spark_bridge.python.table_call import TableCall
from kquery_spark.spark_bridge.python.table_evaluation import TableEvaluation
from kquery_spark.spark_bridge.python.table_state import handler_of
from kquery_spark.spark_bridge.session.bridge import Bridge
from kquery_spark.spark_bridge.session.interpreter import interpreter_of
from kquery_spark.spark_bridge.session.setting_values import is_true
from kquery_spark.spark_bridge.session.versions import minor_version
from kquery_spark.types import names as t

_LARGE_TYPES = "spark.sql.execution.arrow.useLargeVarTypes"
_FUNCTION = "org.apache.spark.api.python.SimplePythonFunction"
_RUNNER = "org.apache.spark.sql.execution.python.ArrowPythonRunner$"
_MAX_BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BINARY_AS_BYTES = "spark.sql.execution.pyspark.binaryAsBytes"
_FIRST_WITH_BYTES = (4, 1)
"""The release from which on that setting says how binary values are pickled."""
_PROFILER = "spark.sql.pyspark.udf.profiler"
_PROFILES = ("spark.python.profile", "spark.python.profile.memory")
_FRAME_SETTINGS = ("window_bound_types", "pandas_window_bound_types")
"""Says for each call whether its frame is the whole partition: the name since 4.1, and the one before."""

_FIRST_WITH_TABLES = (4, 0)
"""The release from which on table functions have partitions of their TABLE argument, and a method ``analyze``."""
_COALESCING = ("spark.sql.adaptive.enabled", "spark.sql.adaptive.coalescePartitions.enabled")

_Evaluation = PythonEvaluation | GroupsEvaluation | CogroupsEvaluation | BatchesEvaluation
EvaluationCode = tuple[bytes, int, tuple[int, ...]]
"""A pickled evaluation, the most rows of a batch of its arguments (0: any number), the broadcast variables it needs."""


class PythonFunctions:
    """Reads the functions of one plan in a session.

    broadcasts: the JVM's broadcast variables that the functions read so far refer to, by id. PySpark makes one of each
    function that is larger than 1 MiB, too.
    """

    def __init__(self, facts: Facts, link: Bridge) -> None:
        self._facts = facts
        self._link = link
        self.broadcasts: dict[int, Any] = {}

    def function(self, node: CatalystNode) -> PythonFunction:
        """The function of a PythonUDF; Unsupported if tasks of the engine cannot call it as Spark does."""
        if node["name"].startswith(STAGE_FUNCTION):
            raise Unsupported("a stage of the engine is no function of the user's")
        if self._profiled:
            raise Unsupported("Python UDFs run in Spark while they are profiled")
        function = self._facts.jvm_object(node).func()
        jvm = self._link.jvm
        if jvm.class_name(function) != _FUNCTION:
            raise Unsupported("a Python UDF of another kind than PySpark's own runs in Spark")
        self._check_surroundings(function)
        command = bytes(function.command().toArray(jvm.call("scala.reflect.ClassTag", "Byte")))
        broadcasts = {int(variable.id()): variable for variable in function.broadcastVars()}
        self.broadcasts.update(broadcasts)
        return PythonFunction(command, tuple(broadcasts))

    def _check_surroundings(self, function: Any) -> None:
        """Raise Unsupported for a function that needs anything which the engine's workers lack."""
        context: Any = self._link.spark.sparkContext
        if function.pythonVer() != context.pythonVer or not self._runs_in_engine(str(function.pythonExec())):
            raise Unsupported(
                "a Python UDF for another Python than that of the engine's workers runs in Spark"
            )
        if dict(function.envVars()) != dict(context.environment):
            raise Unsupported("a Python UDF with another environment than the session's runs in Spark")
        if not set(function.pythonIncludes()) <= set(context._python_includes or ()):
            raise Unsupported("a Python UDF with Python files that the session lacks runs in Spark")

    def _runs_in_engine(self, executable: str) -> bool:
        """Return whether an executable is the one that the engine's workers run."""
        interpreter = interpreter_of(self._link.spark.sparkContext)
        ours = interpreter.environment.get(WORKER_INTERPRETER, interpreter.executable)
        return ours == executable or ours == shutil.which(executable)

    @cached_property
    def _profiled(self) -> bool:
        context = self._link.spark.sparkContext
        on = any(is_true(context.getConf().get(name, "false")) for name in _PROFILES)
        return on or bool(self._link.conf.contains(_PROFILER))

    @cached_property
    def _settings(self) -> Mapping[str, str]:
        """The settings that the JVM sends to workers of functions with Arrow."""
        jvm = self._link.jvm
        try:
            return jvm.java_map(jvm.call(_RUNNER, "getPythonRunnerConfMap", self._link.conf))
        except Exception as error:  # py4j's: a Spark whose runner is another
            raise Unsupported(
                "this Spark does not say what it tells Python workers of the session"
            ) from error

    def evaluation(
        self,
        eval_type: int,
        calls: Sequence[PythonCall],
        arguments: pa.Schema,
        results: pa.Schema,
    ) -> EvaluationCode:
        """The evaluation of calls for single rows.

        Unsupported for types whose values the engine does not convert exactly as Spark does.
        """
        kind = _known(eval_type)
        pickled = eval_type == PICKLED
        is_supported = is_picklable if pickled else _crosses_as_arrow
        _check_types(kind, is_supported, [*arguments.types, *results.types])
        settings = {} if pickled else self._arrow_settings(kind)
        pickling = self._pickling(results) if pickled else Pickling()
        evaluation = PythonEvaluation(eval_type, tuple(calls), settings, arguments, results, pickling)
        return _code(evaluation, 0 if pickled else self._batch_rows)

    def groups(
        self, eval_type: int, calls: Sequence[PythonCall], arguments: pa.Schema, results: pa.Schema
    ) -> EvaluationCode:
        """The evaluation of calls for whole groups."""
        settings = self._table_settings(eval_type, [arguments], results)
        evaluation = GroupsEvaluation(eval_type, tuple(calls), settings, arguments, results)
        return _code(evaluation, self._group_batch_rows)

    def cogroups(
        self, eval_type: int, call: PythonCall, left: pa.Schema, right: pa.Schema, results: pa.Schema
    ) -> EvaluationCode:
        """The evaluation of a call for pairs of groups."""
        settings = self._table_settings(eval_type, [left, right], results)
        evaluation = CogroupsEvaluation(eval_type, (call,), settings, left, results, right)
        return _code(evaluation, self._group_batch_rows)

    def windows(
        self,
        eval_type: int,
        calls: Sequence[PythonCall],
        are_whole: Sequence[bool],
        arguments: pa.Schema,
        results: pa.Schema,
    ) -> EvaluationCode:
        """The evaluation of calls for partitions of a window.

        are_whole: for each call, whether its frame is always the partition, and not given by bounds.
        """
        over = type_over_windows(eval_type)
        if over is None:
            raise Unsupported("a Python function of this kind over a window runs in Spark")
        settings = self._table_settings(over, [arguments], results)
        frames = ",".join("unbounded" if is_whole else "bounded" for is_whole in are_whole)
        settings.update(dict.fromkeys(_FRAME_SETTINGS, frames))
        evaluation = GroupsEvaluation(over, tuple(calls), settings, arguments, results)
        return _code(evaluation, self._group_batch_rows)

    def batches(
        self, eval_type: int, calls: Sequence[PythonCall], arguments: pa.Schema, results: pa.Schema
    ) -> EvaluationCode:
        """The evaluation of a call for all batches of a task."""
        settings = self._table_settings(eval_type, [arguments], results)
        evaluation = BatchesEvaluation(eval_type, tuple(calls), settings, arguments, results)
        return _code(evaluation, self._batch_rows)

    def table_function(self, node: CatalystNode, call: PythonCall) -> TableFunction:
        """The call of a table function as its PythonUDTF describes it."""
        udtf = self._facts.jvm_object(node)
        indexes: tuple[int, ...] = ()
        analyzed = None
        if (minor_version(self._link.jvm.spark_version) or _FIRST_WITH_TABLES) >= _FIRST_WITH_TABLES:
            partition, result = udtf.pythonUDTFPartitionColumnIndexes(), udtf.pickledAnalyzeResult()
            if partition.isDefined():
                indexes = _integers(partition.get().partitionChildIndexes())
            analyzed = bytes(result.get()) if result.isDefined() else None
        tables: tuple[int, ...] = ()
        if int(node["evalType"]) == BATCHED_TABLE and udtf.tableArguments().isDefined():
            flags = str(udtf.tableArguments().get().mkString(",")).split(",")
            tables = tuple(
                dict.fromkeys(
                    o for o, is_table in zip(call.offsets, flags, strict=True) if is_table == "true"
                )
            )
        returns = str(udtf.elementSchema().json())
        described = (int(node["evalType"]), call, str(node["name"]), returns)
        return TableFunction(TableCall(*described, indexes, analyzed, tables), handler_of(call.commands[0]))

    def table(
        self, function: TableFunction, by_row: bool, arguments: pa.Schema, results: pa.Schema
    ) -> EvaluationCode:
        """The evaluation of a table function. by_row: each row by itself."""
        call = function.call
        kind, pickled = _known(call.eval_type), call.eval_type == PICKLED_TABLE
        is_supported = is_picklable if pickled else _crosses_as_arrow
        _check_types(kind, is_supported, [*arguments.types, *results.types])
        settings = {} if pickled else self._arrow_settings(kind)
        pickling = self._pickling(results) if pickled else Pickling()
        evaluation = TableEvaluation(call, settings, arguments, results, pickling, by_row)
        broadcasts = call.call.functions[0].broadcasts
        return pickle.dumps(evaluation), 0 if pickled else self._batch_rows, broadcasts

    @property
    def empties_no_task(self) -> bool:
        """Whether Spark makes no task of a shuffle's empty partitions, unless all of them are."""
        return all(is_true(self._link.conf.getConfString(name)) for name in _COALESCING)

    def _table_settings(
        self, eval_type: int, arguments: Sequence[pa.Schema], results: pa.Schema
    ) -> dict[str, str]:
        """The settings for workers of functions that see more than single rows; Unsupported for what Spark has to call."""
        kind = _known(eval_type)
        for schema in arguments:
            if not len(schema):
                raise Unsupported(f"{kind.words} of rows without columns runs in Spark")
            if kind.takes_rows and len(set(schema.names)) < len(schema):
                raise Unsupported(f"{kind.words} of rows that have a name twice runs in Spark")
        types = [dtype for schema in (*arguments, results) for dtype in schema.types]
        _check_types(kind, _crosses_as_arrow, types)
        return self._arrow_settings(kind)

    def _arrow_settings(self, kind: PythonKind) -> dict[str, str]:
        """The settings for workers of a kind that crosses as Arrow, as a value that can be pickled."""
        if self._link.conf.contains(_LARGE_TYPES) and is_true(self._link.conf.getConfString(_LARGE_TYPES)):
            raise Unsupported(f"{kind.words} runs in Spark while Arrow's large types are on")
        return dict(self._settings)

    def _pickling(self, results: pa.Schema) -> Pickling:
        """How the session's JVM pickles values; the JVM is asked about maps only if there are any."""
        chooses = (minor_version(self._link.jvm.spark_version) or _FIRST_WITH_BYTES) >= _FIRST_WITH_BYTES
        as_bytes = chooses and is_true(self._link.conf.getConfString(_BINARY_AS_BYTES))
        return Pickling(as_bytes, any(map(has_maps, results.types)) and self._oversizes_put_all)

    @cached_property
    def _oversizes_put_all(self) -> bool:
        """See ``Pickling``: releases of Java that do make room for 6 entries where three are put."""
        jvm = self._link.jvm
        put, read = jvm.new("java.util.HashMap"), jvm.new("java.util.HashMap")
        for key in (4, 1, 2):
            put.put(key, key)
        read.putAll(put)
        return str(read.keySet().toString()) == "[1, 2, 4]"

    @property
    def _group_batch_rows(self) -> int:
        """The most rows of a batch of a group (0: a group is one batch)."""
        return self._batch_rows if counts_groups(self._link.jvm.spark_version) else 0

    @property
    def _batch_rows(self) -> int:
        return max(int(self._link.conf.getConfString(_MAX_BATCH_ROWS)), 0)


@dataclass(frozen=True)
class TableFunction:
    """A call of a table function. handler: a copy of its class; None if the driver cannot read it."""

    call: TableCall
    handler: type | None


def _integers(values: Any) -> tuple[int, ...]:
    """The integers of a sequence of the JVM."""
    return tuple(int(value) for value in str(values.mkString(",")).split(",") if value)


def _code(evaluation: _Evaluation, batch_rows: int) -> EvaluationCode:
    functions = (function for call in evaluation.calls for function in call.functions)
    broadcasts = dict.fromkeys(variable for function in functions for variable in function.broadcasts)
    return pickle.dumps(evaluation), batch_rows, tuple(broadcasts)


def _known(eval_type: int) -> PythonKind:
    """The kind of an evaluation type; Unsupported if the engine does not know it."""
    kind = kind_of(eval_type)
    if kind is None:
        raise Unsupported("a Python UDF of a kind that the engine does not know runs in Spark")
    return kind


def _check_types(
    kind: PythonKind, is_supported: Callable[[pa.DataType], bool], dtypes: Sequence[pa.DataType]
) -> None:
    for dtype in dtypes:
        if not is_supported(dtype):
            raise Unsupported(
                f"{kind.words} that takes or returns {t.spark_name(dtype)} values runs in Spark"
            )


_FLAT = (t.BOOL, t.BYTE, t.SHORT, t.INT, t.LONG, t.FLOAT, t.DOUBLE, t.STRING, t.BINARY, t.DAY_TIME)


def _crosses_as_arrow(dtype: pa.DataType) -> bool:
    """Return whether the engine exchanges values of a type with functions over Arrow exactly as Spark does."""
    if t.is_nested(dtype):
        return t.has_distinct_fields(dtype) and all(map(_crosses_as_arrow, t.parts_of(dtype)))
    is_time = pa.types.is_date32(dtype) or pa.types.is_timestamp(dtype)
    return dtype in _FLAT or t.is_decimal(dtype) or is_time

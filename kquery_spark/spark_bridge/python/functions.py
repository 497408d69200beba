"""Python functions in Spark's plans: reads their code, checks their environment, builds the engine's evaluation."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kquery_spark.cached_property import cached_property
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
from kquery_spark.spark_bridge.python.pickled_values import PICKLED, Pickling, is_picklable
from kquery_spark.spark_bridge.python.streams import counts_groups
from kquery_spark.spark_bridge.python.table_call import TableCall
from kquery_spark.spark_bridge.python.table_evaluation import TableEvaluation
from kquery_spark.spark_bridge.python.table_state import load_handler
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
"""The first release in which that setting decides how binary values are pickled."""
_PROFILER = "spark.sql.pyspark.udf.profiler"
_PROFILES = ("spark.python.profile", "spark.python.profile.memory")
_FRAME_SETTINGS = ("window_bound_types", "pandas_window_bound_types")
"""The setting that states for each call whether its frame is the whole partition: the name since 4.1, and the old one."""

_FIRST_WITH_TABLES = (4, 0)
"""The first release in which table functions can partition their TABLE argument and have a method ``analyze``."""
_COALESCING = ("spark.sql.adaptive.enabled", "spark.sql.adaptive.coalescePartitions.enabled")

_Evaluation = PythonEvaluation | GroupsEvaluation | CogroupsEvaluation | BatchesEvaluation
EvaluationCode = tuple[bytes, int, tuple[int, ...]]
"""A pickled evaluation, the maximum rows per batch of arguments (0: no limit), and the ids of its broadcast variables."""


class PythonFunctions:
    """Reads the Python functions of one plan and builds the engine's evaluations of them.

    The engine's workers must call a function exactly as Spark's would. So ``function`` declines functions with another
    Python, environment or set of files; the methods that build evaluations decline types whose conversion differs.

    broadcasts: the JVM's broadcast variables that the functions read so far refer to, by id. PySpark also creates one for
    each function that is larger than 1 MiB.
    """

    def __init__(self, facts: Facts, bridge: Bridge) -> None:
        self._facts = facts
        self._bridge = bridge
        self.broadcasts: dict[int, Any] = {}

    def function(self, node: CatalystNode) -> PythonFunction:
        """Read the function of a PythonUDF; raises Unsupported if the engine's tasks cannot call it as Spark does."""
        if node["name"].startswith(STAGE_FUNCTION):
            raise Unsupported("a stage of the engine is not a Python UDF")
        if self._profiled:
            raise Unsupported("Python UDFs are not supported while they are profiled")
        function = self._facts.jvm_object(node).func()
        jvm = self._bridge.jvm
        if jvm.class_name(function) != _FUNCTION:
            raise Unsupported("Python UDFs that are not PySpark's own kind are not supported")
        self._check_surroundings(function)
        command = bytes(function.command().toArray(jvm.call("scala.reflect.ClassTag", "Byte")))
        broadcasts = {int(variable.id()): variable for variable in function.broadcastVars()}
        self.broadcasts.update(broadcasts)
        return PythonFunction(command, tuple(broadcasts))

    def _check_surroundings(self, function: Any) -> None:
        """Raise Unsupported if a function needs another interpreter, environment or files than the engine's workers have."""
        context: Any = self._bridge.spark.sparkContext
        if function.pythonVer() != context.pythonVer or not self._runs_in_engine(str(function.pythonExec())):
            raise Unsupported(
                "Python UDFs for another interpreter than that of the engine's workers are not supported"
            )
        if dict(function.envVars()) != dict(context.environment):
            raise Unsupported(
                "Python UDFs with an environment that differs from the session's are not supported"
            )
        if not set(function.pythonIncludes()) <= set(context._python_includes or ()):
            raise Unsupported("Python UDFs with Python files that the session lacks are not supported")

    def _runs_in_engine(self, executable: str) -> bool:
        """Return whether an executable is the one that the engine's workers run."""
        interpreter = interpreter_of(self._bridge.spark.sparkContext)
        engine_executable = interpreter.environment.get(WORKER_INTERPRETER, interpreter.executable)
        return engine_executable == executable or engine_executable == shutil.which(executable)

    @cached_property
    def _profiled(self) -> bool:
        context = self._bridge.spark.sparkContext
        on = any(is_true(context.getConf().get(name, "false")) for name in _PROFILES)
        return on or bool(self._bridge.conf.contains(_PROFILER))

    @cached_property
    def _settings(self) -> Mapping[str, str]:
        """The settings that the JVM sends to workers of functions that exchange Arrow batches."""
        jvm = self._bridge.jvm
        try:
            return jvm.java_map(jvm.call(_RUNNER, "getPythonRunnerConfMap", self._bridge.conf))
        except Exception as error:  # a py4j error: this Spark has another runner class
            raise Unsupported(
                "the settings that this version of Spark sends to Python workers are not known"
            ) from error

    def evaluation(
        self,
        eval_type: int,
        calls: Sequence[PythonCall],
        arguments: pa.Schema,
        results: pa.Schema,
    ) -> EvaluationCode:
        """Build the evaluation of calls for single rows.

        Raises Unsupported for types whose values the engine does not convert exactly as Spark does.
        """
        kind = _known_kind(eval_type)
        pickled = eval_type == PICKLED
        is_supported = is_picklable if pickled else _is_transferable_as_arrow
        _check_types(kind, is_supported, [*arguments.types, *results.types])
        settings = {} if pickled else self._arrow_settings(kind)
        pickling = self._pickling if pickled else Pickling()
        evaluation = PythonEvaluation(eval_type, tuple(calls), settings, arguments, results, pickling)
        return _pickled_evaluation(evaluation, 0 if pickled else self._batch_rows)

    def groups_evaluation(
        self, eval_type: int, calls: Sequence[PythonCall], arguments: pa.Schema, results: pa.Schema
    ) -> EvaluationCode:
        """Build the evaluation of calls for whole groups."""
        settings = self._table_settings(eval_type, [arguments], results)
        evaluation = GroupsEvaluation(eval_type, tuple(calls), settings, arguments, results)
        return _pickled_evaluation(evaluation, self._group_batch_rows)

    def cogroups_evaluation(
        self, eval_type: int, call: PythonCall, left: pa.Schema, right: pa.Schema, results: pa.Schema
    ) -> EvaluationCode:
        """Build the evaluation of a call for pairs of groups."""
        settings = self._table_settings(eval_type, [left, right], results)
        evaluation = CogroupsEvaluation(eval_type, (call,), settings, left, results, right)
        return _pickled_evaluation(evaluation, self._group_batch_rows)

    def windows_evaluation(
        self,
        eval_type: int,
        calls: Sequence[PythonCall],
        are_whole: Sequence[bool],
        arguments: pa.Schema,
        results: pa.Schema,
    ) -> EvaluationCode:
        """Build the evaluation of calls for partitions of a window.

        are_whole: for each call, whether its frame is always the whole partition, so that it has no bounds.
        """
        window_type = type_over_windows(eval_type)
        if window_type is None:
            raise Unsupported("Python functions of this kind over windows are not supported")
        settings = self._table_settings(window_type, [arguments], results)
        frames = ",".join("unbounded" if is_whole else "bounded" for is_whole in are_whole)
        settings.update(dict.fromkeys(_FRAME_SETTINGS, frames))
        evaluation = GroupsEvaluation(window_type, tuple(calls), settings, arguments, results)
        return _pickled_evaluation(evaluation, self._group_batch_rows)

    def batches_evaluation(
        self, eval_type: int, calls: Sequence[PythonCall], arguments: pa.Schema, results: pa.Schema
    ) -> EvaluationCode:
        """Build the evaluation of a call for all batches of a task."""
        settings = self._table_settings(eval_type, [arguments], results)
        evaluation = BatchesEvaluation(eval_type, tuple(calls), settings, arguments, results)
        return _pickled_evaluation(evaluation, self._batch_rows)

    def table_function(self, node: CatalystNode, call: PythonCall) -> TableFunction:
        """Read the call of a table function from its PythonUDTF."""
        udtf = self._facts.jvm_object(node)
        indexes: tuple[int, ...] = ()
        analyzed = None
        if (minor_version(self._bridge.jvm.spark_version) or _FIRST_WITH_TABLES) >= _FIRST_WITH_TABLES:
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
        return TableFunction(TableCall(*described, indexes, analyzed, tables), load_handler(call.commands[0]))

    def table_evaluation(
        self, function: TableFunction, by_row: bool, arguments: pa.Schema, results: pa.Schema
    ) -> EvaluationCode:
        """Build the evaluation of a table function. by_row: each row is evaluated independently."""
        call = function.call
        kind, pickled = _known_kind(call.eval_type), call.eval_type == PICKLED_TABLE
        is_supported = is_picklable if pickled else _is_transferable_as_arrow
        _check_types(kind, is_supported, [*arguments.types, *results.types])
        settings = {} if pickled else self._arrow_settings(kind)
        pickling = self._pickling if pickled else Pickling()
        evaluation = TableEvaluation(call, settings, arguments, results, pickling, by_row)
        broadcasts = call.call.functions[0].broadcasts
        return pickle.dumps(evaluation), 0 if pickled else self._batch_rows, broadcasts

    @property
    def skips_empty_partitions(self) -> bool:
        """True if Spark runs no tasks for empty partitions of a shuffle, unless all partitions are empty."""
        return all(is_true(self._bridge.conf.getConfString(name)) for name in _COALESCING)

    def _table_settings(
        self, eval_type: int, arguments: Sequence[pa.Schema], results: pa.Schema
    ) -> dict[str, str]:
        """Return the settings for workers of functions that see several rows; raises Unsupported for unsupported schemas."""
        kind = _known_kind(eval_type)
        for schema in arguments:
            if not len(schema):
                raise Unsupported(f"{kind.words} of rows without columns is not supported")
            if kind.takes_rows and len(set(schema.names)) < len(schema):
                raise Unsupported(f"{kind.words} of rows with duplicate column names is not supported")
        types = [dtype for schema in (*arguments, results) for dtype in schema.types]
        _check_types(kind, _is_transferable_as_arrow, types)
        return self._arrow_settings(kind)

    def _arrow_settings(self, kind: PythonKind) -> dict[str, str]:
        """The settings for workers of a kind whose values are exchanged as Arrow, in a form that can be pickled."""
        if self._bridge.conf.contains(_LARGE_TYPES) and is_true(
            self._bridge.conf.getConfString(_LARGE_TYPES)
        ):
            raise Unsupported(f"{kind.words} is not supported while Arrow's large types are on")
        return dict(self._settings)

    @property
    def _pickling(self) -> Pickling:
        """How the session's JVM pickles values."""
        chooses = (minor_version(self._bridge.jvm.spark_version) or _FIRST_WITH_BYTES) >= _FIRST_WITH_BYTES
        as_bytes = chooses and is_true(self._bridge.conf.getConfString(_BINARY_AS_BYTES))
        return Pickling(as_bytes)

    @property
    def _group_batch_rows(self) -> int:
        """The maximum number of rows per batch of a group; 0: a group is one batch."""
        return self._batch_rows if counts_groups(self._bridge.jvm.spark_version) else 0

    @property
    def _batch_rows(self) -> int:
        return max(int(self._bridge.conf.getConfString(_MAX_BATCH_ROWS)), 0)


@dataclass(frozen=True)
class TableFunction:
    """A call of a table function. handler: a copy of its class; None if the driver cannot read it."""

    call: TableCall
    handler: type | None


def _integers(values: Any) -> tuple[int, ...]:
    """Convert a JVM sequence of integers."""
    return tuple(int(value) for value in str(values.mkString(",")).split(",") if value)


def _pickled_evaluation(evaluation: _Evaluation, batch_rows: int) -> EvaluationCode:
    functions = (function for call in evaluation.calls for function in call.functions)
    broadcasts = dict.fromkeys(variable for function in functions for variable in function.broadcasts)
    return pickle.dumps(evaluation), batch_rows, tuple(broadcasts)


def _known_kind(eval_type: int) -> PythonKind:
    """The kind of an evaluation type; raises Unsupported for an unknown one."""
    kind = kind_of(eval_type)
    if kind is None:
        raise Unsupported("Python UDFs of this kind are not supported")
    return kind


def _check_types(
    kind: PythonKind, is_supported: Callable[[pa.DataType], bool], dtypes: Sequence[pa.DataType]
) -> None:
    for dtype in dtypes:
        if not is_supported(dtype):
            raise Unsupported(
                f"{kind.words} that takes or returns {t.spark_name(dtype)} values is not supported"
            )


_FLAT = (t.BOOL, t.BYTE, t.SHORT, t.INT, t.LONG, t.FLOAT, t.DOUBLE, t.STRING, t.BINARY, t.DAY_TIME)


def _is_transferable_as_arrow(dtype: pa.DataType) -> bool:
    """Return whether the engine exchanges values of a type with functions over Arrow exactly as Spark does."""
    if t.is_nested(dtype):
        return t.has_distinct_fields(dtype) and all(map(_is_transferable_as_arrow, t.parts_of(dtype)))
    is_time = pa.types.is_date32(dtype) or pa.types.is_timestamp(dtype)
    return dtype in _FLAT or t.is_decimal(dtype) or is_time

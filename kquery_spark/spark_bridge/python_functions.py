"""Python functions in Spark's plans: reads their code, checks their environment, builds the engine's evaluation."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from kquery_spark.config.environment import WORKER_INTERPRETER
from kquery_spark.errors import Unsupported
from kquery_spark.spark_bridge import pickled_values
from kquery_spark.spark_bridge.interpreter import interpreter_of
from kquery_spark.spark_bridge.plan_facts import Facts
from kquery_spark.spark_bridge.plan_tree import CatalystNode
from kquery_spark.spark_bridge.pyspark_names import PythonEvalType
from kquery_spark.spark_bridge.python_evaluation import PythonEvaluation
from kquery_spark.spark_bridge.python_message import PythonCall
from kquery_spark.spark_bridge.session import Bridge
from kquery_spark.spark_bridge.spark_types import spark_type
from kquery_spark.spark_bridge.versions import minor_version
from kquery_spark.types import names as t

_KINDS = {
    getattr(PythonEvalType, name): words
    for name, words in {
        "SQL_BATCHED_UDF": "a Python UDF",
        "SQL_ARROW_BATCHED_UDF": "an Arrow-optimized Python UDF",
        "SQL_SCALAR_PANDAS_UDF": "a pandas UDF",
        "SQL_SCALAR_PANDAS_ITER_UDF": "an iterator pandas UDF",
        "SQL_SCALAR_ARROW_UDF": "an Arrow UDF",
        "SQL_SCALAR_ARROW_ITER_UDF": "an iterator Arrow UDF",
    }.items()
    if hasattr(PythonEvalType, name)
}
_COMPARED = ((4, 3),)  # releases that all of tests/accelerate/test_python_functions.py ran with
_FUNCTION = "org.apache.spark.api.python.SimplePythonFunction"
_RUNNER = "org.apache.spark.sql.execution.python.ArrowPythonRunner$"
_MAX_BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_PROFILER = "spark.sql.pyspark.udf.profiler"
_PROFILES = ("spark.python.profile", "spark.python.profile.memory")


def reason_to_stay(kind: str, version: str) -> str | None:
    """Why functions of a kind stay with a version of Spark; None where the engine's answers were compared with it."""
    if minor_version(version) in _COMPARED:
        return None
    return f"{kind} runs in Spark on {version}, where it is not compared with the engine yet"


class PythonFunctions:
    """Reads the functions of one plan in a session."""

    def __init__(self, facts: Facts, link: Bridge) -> None:
        self._facts = facts
        self._link = link

    def command(self, node: CatalystNode) -> bytes:
        """The pickled function of a PythonUDF; Unsupported if tasks of the engine cannot call it as Spark does."""
        if not node["udfDeterministic"]:
            raise Unsupported("a nondeterministic Python UDF runs in Spark")
        if self._profiled:
            raise Unsupported("Python UDFs run in Spark while they are profiled")
        function = self._facts.jvm_object(node).func()
        jvm = self._link.jvm
        if jvm.class_name(function) != _FUNCTION:
            raise Unsupported("a Python UDF of another kind than PySpark's own runs in Spark")
        self._check_surroundings(function)
        return bytes(function.command().toArray(jvm.call("scala.reflect.ClassTag", "Byte")))

    def _check_surroundings(self, function: Any) -> None:
        """Raise Unsupported for a function that needs anything which the engine's workers lack."""
        context: Any = self._link.spark.sparkContext
        if not function.broadcastVars().isEmpty():
            raise Unsupported(
                "a Python UDF that refers to broadcast variables, or is larger than 1 MiB, runs in Spark"
            )
        if function.pythonVer() != context.pythonVer or not self._runs_in_engine(str(function.pythonExec())):
            raise Unsupported(
                "a Python UDF for another Python than that of the engine's workers runs in Spark"
            )
        if dict(function.envVars()) != dict(context.environment):
            raise Unsupported("a Python UDF with another environment than the session's runs in Spark")
        if not set(function.pythonIncludes()) <= set(context._python_includes or ()):
            raise Unsupported("a Python UDF with Python files that the session lacks runs in Spark")

    def _runs_in_engine(self, executable: str) -> bool:
        """Whether an executable is the one that the engine's workers run."""
        interpreter = interpreter_of(self._link.spark.sparkContext)
        ours = interpreter.environment.get(WORKER_INTERPRETER, interpreter.executable)
        return ours == executable or ours == shutil.which(executable)

    @cached_property
    def _profiled(self) -> bool:
        context = self._link.spark.sparkContext
        on = any(str(context.getConf().get(name, "false")).lower() == "true" for name in _PROFILES)
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

    def _check_release(self, kind: str) -> None:
        """Raise Unsupported on a release whose answers were not compared with the engine's."""
        if reason := reason_to_stay(kind, self._link.jvm.spark_version):
            raise Unsupported(reason)

    def evaluation(
        self,
        eval_type: int,
        calls: Sequence[PythonCall],
        arguments: Sequence[pa.DataType],
        results: Sequence[pa.DataType],
    ) -> tuple[bytes, int]:
        """The pickled evaluation of calls, and the most rows of a batch (0: any number).

        Unsupported for types whose values the engine does not convert exactly as Spark does.
        """
        kind = _KINDS.get(eval_type)
        if kind is None:
            raise Unsupported("a Python UDF of a kind that the engine does not know runs in Spark")
        self._check_release(kind)
        pickled = eval_type == pickled_values.PICKLED
        is_supported = pickled_values.is_supported if pickled else _crosses_as_arrow
        for dtype in (*arguments, *results):
            if not is_supported(dtype):
                raise Unsupported(f"{kind} that takes or returns {t.spark_name(dtype)} values runs in Spark")
        fields = [_field(f"_{i}", dtype) for i, dtype in enumerate(arguments)]
        schema = json.dumps({"type": "struct", "fields": fields})
        settings = {} if pickled else dict(self._settings)
        evaluation = PythonEvaluation(eval_type, tuple(calls), settings, schema, tuple(results))
        most = 0 if pickled else int(self._link.conf.getConfString(_MAX_BATCH_ROWS))
        return pickle.dumps(evaluation), max(most, 0)


def _field(name: str, dtype: pa.DataType) -> dict[str, Any]:
    return {"name": name, "type": spark_type(dtype), "nullable": True, "metadata": {}}


_FLAT = (t.BOOL, t.BYTE, t.SHORT, t.INT, t.LONG, t.FLOAT, t.DOUBLE, t.STRING, t.BINARY)


def _crosses_as_arrow(dtype: pa.DataType) -> bool:
    """Whether the engine exchanges values of a type with functions over Arrow exactly as Spark does."""
    is_time = pa.types.is_date32(dtype) or pa.types.is_timestamp(dtype)
    return dtype in _FLAT or t.is_decimal(dtype) or is_time

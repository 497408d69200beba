"""Builds the message with the functions to call that Spark sends to a Python worker, in the format of its release.

Spark 4.3 sends everything in one message; earlier releases send a sequence of parts, so their ``read_udfs`` reads a stream.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyspark

from kquery_spark.spark_bridge.frames.pyspark_names import PythonEvalType
from kquery_spark.spark_bridge.python.call import PythonCall
from kquery_spark.spark_bridge.python.inputs import PLAIN_SERIALIZERS, Inputs
from kquery_spark.spark_bridge.python.streams import STREAMS, counts_groups
from kquery_spark.spark_bridge.session.versions import minor_version

Function = Callable[[int, Iterator[Any]], Iterator[Any]]
Dump = Callable[[Any], Iterator[pa.RecordBatch]]

_MARK_BYTES = 4  # size of the marker that PySpark's serializers write before each Arrow stream


def read_functions(
    worker: ModuleType,
    eval_type: int,
    calls: tuple[PythonCall, ...],
    settings: Mapping[str, str],
    schema: str,
) -> tuple[Function, Inputs, Dump]:
    """Build PySpark's worker function for the calls; returns it with the converters of its arguments and results.

    worker: the module ``pyspark.worker``. schema: the JSON schema of the arguments.
    """
    layout = STREAMS.get(minor_version(pyspark.__version__))
    if layout is None:
        udfs = _read_message(worker, eval_type, calls, settings, schema)
    else:
        stream = layout.written(eval_type, calls, settings, schema)
        confs = layout.confs(worker, eval_type, settings, schema)
        udfs = worker.read_udfs(worker.pickleSer, stream, eval_type, *confs)
    function, _, deserializer, serializer = udfs
    return function, Inputs(deserializer, counts_groups(pyspark.__version__)), dumper(serializer)


def _read_message(
    worker: ModuleType,
    eval_type: int,
    calls: tuple[PythonCall, ...],
    settings: Mapping[str, str],
    schema: str,
) -> Any:
    """Pass the message to ``read_udfs`` of Spark 4.3 and return its result."""
    from pyspark.worker_message import UDFInfo

    evaluation = {"input_type": schema} if eval_type == PythonEvalType.SQL_ARROW_BATCHED_UDF else {}
    infos = [UDFInfo(*_fields(call)) for call in calls]
    confs = worker.RunnerConf(dict(settings)), worker.EvalConf(evaluation)
    return worker.read_udfs(worker.pickleSer, infos, eval_type, *confs)


def _fields(call: PythonCall) -> tuple[list[memoryview], list[int], dict[str, int], int]:
    pairs = list(zip(call.offsets, call.names, strict=True))
    positional = [offset for offset, name in pairs if not name]
    return [memoryview(c) for c in call.commands], positional, {n: o for o, n in pairs if n}, 0


def dumper(serializer: Any) -> Dump:
    """Build a function that extracts result batches from PySpark's serializer."""

    def dump(results: Any) -> Iterator[pa.RecordBatch]:
        if type(serializer).__name__ in PLAIN_SERIALIZERS:
            return iter((results,))
        sink = io.BytesIO()
        serializer.dump_stream(iter((results,)), sink)
        stream = sink.getbuffer()[_MARK_BYTES:]
        batches: Iterator[pa.RecordBatch] = pa.ipc.open_stream(pa.py_buffer(stream)) if stream else iter(())
        return batches

    return dump

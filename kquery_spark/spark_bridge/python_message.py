"""The message by which Spark tells a Python worker which functions to call, as PySpark's own worker of the release reads it.

Spark 4.3 sends one message with all of it; earlier releases sent the parts one after the other, so that their
``read_udfs`` reads a stream.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyspark

from kquery_spark.spark_bridge.pyspark_names import PythonEvalType
from kquery_spark.spark_bridge.python_call import PythonCall
from kquery_spark.spark_bridge.python_streams import STREAMS
from kquery_spark.spark_bridge.versions import minor_version

Function = Callable[[int, Iterator[Any]], Iterator[Any]]
Load = Callable[[pa.RecordBatch], Iterator[Any]]
Dump = Callable[[Any], Iterator[pa.RecordBatch]]

_PLAIN = ("ArrowStreamSerializer", "ArrowStreamGroupSerializer", "ArrowStreamCoGroupSerializer")
_MARK_BYTES = 4  # before each Arrow stream that PySpark's serializers write


def read_functions(
    worker: ModuleType,
    eval_type: int,
    calls: tuple[PythonCall, ...],
    settings: Mapping[str, str],
    schema: str,
) -> tuple[Function, Load, Dump]:
    """The function that PySpark's worker builds of the calls, and its conversions of batches from and to Arrow.

    worker: the module ``pyspark.worker``. schema: of the arguments, in JSON.
    """
    stream = STREAMS.get(minor_version(pyspark.__version__))
    if stream is None:
        udfs = _read_message(worker, eval_type, calls, settings, schema)
    else:
        parts = stream.written(eval_type, calls, settings, schema)
        confs = stream.confs(worker, eval_type, settings, schema)
        udfs = worker.read_udfs(worker.pickleSer, parts, eval_type, *confs)
    function, _, deserializer, serializer = udfs
    return function, _loader(deserializer), _dumper(serializer)


def _read_message(
    worker: ModuleType,
    eval_type: int,
    calls: tuple[PythonCall, ...],
    settings: Mapping[str, str],
    schema: str,
) -> Any:
    """What ``read_udfs`` of Spark 4.3 makes of the message."""
    from pyspark.worker_message import UDFInfo

    evaluation = {"input_type": schema} if eval_type == PythonEvalType.SQL_ARROW_BATCHED_UDF else {}
    infos = [UDFInfo(*_fields(call)) for call in calls]
    confs = worker.RunnerConf(dict(settings)), worker.EvalConf(evaluation)
    return worker.read_udfs(worker.pickleSer, infos, eval_type, *confs)


def _fields(call: PythonCall) -> tuple[list[memoryview], list[int], dict[str, int], int]:
    pairs = list(zip(call.offsets, call.names, strict=True))
    positional = [offset for offset, name in pairs if not name]
    return [memoryview(c) for c in call.commands], positional, {n: o for o, n in pairs if n}, 0


def _loader(deserializer: Any) -> Load:
    """Reads batches as from Spark's socket: into memory of their own, which functions may not write to."""

    def load(batch: pa.RecordBatch) -> Iterator[Any]:
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        sink.seek(0)
        items: Iterator[Any] = deserializer.load_stream(sink)
        return items

    return load


def _dumper(serializer: Any) -> Dump:
    def dump(results: Any) -> Iterator[pa.RecordBatch]:
        if _is_plain(serializer):
            return iter((results,))
        sink = io.BytesIO()
        serializer.dump_stream(iter((results,)), sink)
        batches: Iterator[pa.RecordBatch] = pa.ipc.open_stream(pa.py_buffer(sink.getbuffer()[_MARK_BYTES:]))
        return batches

    return dump


def _is_plain(serializer: Any) -> bool:
    """Whether a serializer of PySpark only writes batches, so that they may as well stay where they are."""
    return type(serializer).__name__ in _PLAIN

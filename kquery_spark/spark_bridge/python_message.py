"""The message by which Spark tells a Python worker which functions to call, as PySpark of each release reads it."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyspark

from kquery_spark.spark_bridge.pyspark_names import PythonEvalType
from kquery_spark.spark_bridge.versions import minor_version

Function = Callable[[int, Iterator[Any]], Iterator[Any]]
Load = Callable[[pa.RecordBatch], Iterator[Any]]
Dump = Callable[[Any], Iterator[pa.RecordBatch]]

_MARK_BYTES = 4  # before each Arrow stream that PySpark's serializers write


@dataclass(frozen=True)
class PythonCall:
    """One call: functions of which each gets the value of the one before, the first one the arguments.

    commands: the pickled functions. offsets: of the arguments among the columns. names: of the arguments, "" without one.
    """

    commands: tuple[bytes, ...]
    offsets: tuple[int, ...]
    names: tuple[str, ...]


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
    release = minor_version(pyspark.__version__)
    assert release is not None  # others have no session
    evaluation = {"input_type": schema} if eval_type == PythonEvalType.SQL_ARROW_BATCHED_UDF else {}
    if release >= (4, 3):
        from pyspark.worker_message import UDFInfo

        infos = [UDFInfo(*_fields(call)) for call in calls]
        confs = worker.RunnerConf(dict(settings)), worker.EvalConf(evaluation)
        udfs = worker.read_udfs(worker.pickleSer, infos, eval_type, *confs)
    elif release >= (4, 2):
        confs = worker.RunnerConf(_stream(_pairs(settings))), worker.EvalConf(_stream(_pairs(evaluation)))
        body = _number(len(calls)) + b"".join(_call(call, named=True) + _long(0) for call in calls)
        udfs = worker.read_udfs(worker.pickleSer, _stream(body), eval_type, *confs)
    else:
        body = _body(release, eval_type, calls, settings, schema)
        udfs = worker.read_udfs(worker.pickleSer, _stream(body), eval_type)
    function, _, deserializer, serializer = udfs
    return function, _loader(deserializer), _dumper(serializer)


def _body(
    release: tuple[int, int],
    eval_type: int,
    calls: tuple[PythonCall, ...],
    settings: Mapping[str, str],
    schema: str,
) -> bytes:
    """The whole message before 4.2, settings included."""
    parts = []
    if eval_type != PythonEvalType.SQL_BATCHED_UDF:
        parts.append(_pairs(settings))
        if eval_type == PythonEvalType.SQL_ARROW_BATCHED_UDF and release >= (4, 1):
            parts.append(_text(schema))
    if release >= (4, 0):
        parts.append(b"\0")  # no profiler
    parts.append(_number(len(calls)))
    parts += [_call(call, named=release >= (4, 0)) for call in calls]
    return b"".join(parts)


def _fields(call: PythonCall) -> tuple[list[memoryview], list[int], dict[str, int], int]:
    pairs = list(zip(call.offsets, call.names, strict=True))
    positional = [offset for offset, name in pairs if not name]
    return [memoryview(c) for c in call.commands], positional, {n: o for o, n in pairs if n}, 0


def _call(call: PythonCall, named: bool) -> bytes:
    """One call. named: whether the release has names of arguments."""
    parts = [_number(len(call.offsets))]
    for offset, name in zip(call.offsets, call.names, strict=True):
        parts.append(_number(offset))
        if named:
            parts.append(b"\1" + _text(name) if name else b"\0")
    parts.append(_number(len(call.commands)))
    parts += [_number(len(command)) + command for command in call.commands]
    return b"".join(parts)


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
    return type(serializer).__name__ == "ArrowStreamSerializer"


def _stream(data: bytes) -> io.BytesIO:
    return io.BytesIO(data)


def _number(value: int) -> bytes:
    return value.to_bytes(4, "big", signed=True)


def _long(value: int) -> bytes:
    return value.to_bytes(8, "big")


def _text(value: str) -> bytes:
    data = value.encode("utf-8")
    return _number(len(data)) + data


def _pairs(texts: Mapping[str, str]) -> bytes:
    return _number(len(texts)) + b"".join(_text(name) + _text(value) for name, value in texts.items())

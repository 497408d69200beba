"""Builds the stream with the functions to call that Spark before 4.3 sends to a Python worker, by release."""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import Any

from kquery_spark.spark_bridge.frames.pyspark_names import PythonEvalType
from kquery_spark.spark_bridge.python.call import PythonCall
from kquery_spark.spark_bridge.python.kinds import kind_of
from kquery_spark.spark_bridge.session.versions import Version, minor_version

_PICKLED = PythonEvalType.SQL_BATCHED_UDF
_BATCHED = PythonEvalType.SQL_ARROW_BATCHED_UDF


@dataclass(frozen=True)
class StreamLayout:
    """Which parts a release writes besides offsets and commands.

    settings: the settings precede functions that exchange Arrow; otherwise the worker gets them as an object.
    writes_input_types: the argument types follow the settings, for Arrow-optimized functions. writes_profiling_flag: a flag
    for profiling is written. named: each argument has a name; tables_named: also those of functions that return rows.
    writes_result_ids: an id follows each function. counts_groups: each group of rows is a stream of its own after the number
    of its tables; otherwise each group is a batch of a single stream.
    """

    settings: bool
    writes_input_types: bool = False
    writes_profiling_flag: bool = False
    named: bool = True
    tables_named: bool = False
    writes_result_ids: bool = False
    counts_groups: bool = True

    def written(
        self, eval_type: int, calls: Sequence[PythonCall], settings: Mapping[str, str], schema: str
    ) -> io.BytesIO:
        """Build the stream, from the position at which ``read_udfs`` begins to read."""
        parts = []
        if self.settings and eval_type != _PICKLED:
            parts.append(pairs_stream(settings).getvalue())
            if self.writes_input_types and eval_type == _BATCHED:
                parts.append(text_bytes(schema))
        if self.writes_profiling_flag:
            parts.append(flag_bytes(False))
        parts.append(integer_bytes(len(calls)))
        for call in calls:
            parts += self._call(call, self._names_arguments(eval_type))
        return io.BytesIO(b"".join(parts))

    def confs(
        self, worker: ModuleType, eval_type: int, settings: Mapping[str, str], schema: str
    ) -> tuple[Any, ...]:
        """The other arguments of ``read_udfs``: settings objects, which are read from streams of their own."""
        if self.settings:
            return ()
        evaluation = {"input_type": schema} if eval_type == _BATCHED else {}
        return worker.RunnerConf(pairs_stream(settings)), worker.EvalConf(pairs_stream(evaluation))

    def _names_arguments(self, eval_type: int) -> bool:
        kind = kind_of(eval_type)
        return self.tables_named or (self.named and not (kind is not None and kind.gives_rows))

    def _call(self, call: PythonCall, named: bool) -> list[bytes]:
        parts = argument_bytes(call, named)
        parts.append(integer_bytes(len(call.commands)))
        parts += [sized_bytes(command) for command in call.commands]
        if self.writes_result_ids:
            parts.append(struct.pack("!q", 0))
        return parts


STREAMS: Mapping[Version | None, StreamLayout] = MappingProxyType(
    {
        (3, 5): StreamLayout(settings=True, named=False, counts_groups=False),
        (4, 0): StreamLayout(settings=True, writes_profiling_flag=True, counts_groups=False),
        (4, 1): StreamLayout(settings=True, writes_input_types=True, writes_profiling_flag=True),
        (4, 2): StreamLayout(settings=False, tables_named=True, writes_result_ids=True),
    }
)
"""The layout by release; later releases send one message."""


def counts_groups(version: str) -> bool:
    """Return whether a version of Spark sends each group of rows as a stream of its own, which may have several batches."""
    layout = STREAMS.get(minor_version(version))
    return layout is None or layout.counts_groups


def pairs_stream(settings: Mapping[str, str]) -> io.BytesIO:
    """Encode the number of settings, and then their names and values."""
    strings = [text_bytes(entry) for pair in settings.items() for entry in pair]
    return io.BytesIO(b"".join([integer_bytes(len(settings)), *strings]))


def argument_bytes(call: PythonCall, named: bool) -> list[bytes]:
    """Encode the number of arguments, and the position of each. named: encode the names of arguments, too."""
    parts = [integer_bytes(len(call.offsets))]
    for offset, name in zip(call.offsets, call.names, strict=True):
        parts.append(integer_bytes(offset))
        if named:
            parts += [flag_bytes(True), text_bytes(name)] if name else [flag_bytes(False)]
    return parts


def integer_bytes(value: int) -> bytes:
    """Encode an integer in four bytes."""
    return struct.pack("!i", value)


def flag_bytes(value: bool) -> bytes:
    """Encode a boolean in one byte."""
    return struct.pack("!?", value)


def sized_bytes(value: bytes) -> bytes:
    """Encode the number of bytes, and then the bytes."""
    return integer_bytes(len(value)) + value


def text_bytes(value: str) -> bytes:
    """Encode the number of bytes of a string, and then its UTF-8 bytes."""
    return sized_bytes(value.encode())

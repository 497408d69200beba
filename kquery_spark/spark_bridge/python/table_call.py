"""A call of a user's Python table function, and the message that passes it to PySpark's worker code.

Spark 4.3 sends everything in one message; earlier releases send a sequence of parts.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pyspark

from kquery_spark.spark_bridge.python.call import PythonCall
from kquery_spark.spark_bridge.python.inputs import Inputs
from kquery_spark.spark_bridge.python.kinds import BATCHED_TABLE, PICKLED_TABLE
from kquery_spark.spark_bridge.python.message import Dump, Function, dumper
from kquery_spark.spark_bridge.python.streams import (
    STREAMS,
    argument_bytes,
    flag_bytes,
    pairs_stream,
    sized_bytes,
    text_bytes,
)
from kquery_spark.spark_bridge.session.versions import minor_version


@dataclass(frozen=True)
class TableCall:
    """A call of a table function.

    returns: the JSON type of its rows. analyzed: the pickled result of its method ``analyze``, if it has one.
    partition_indexes: the indexes of the partition keys in the TABLE argument. table_offsets: the positions of TABLE
    arguments among the columns.
    """

    eval_type: int
    call: PythonCall
    name: str
    returns: str
    partition_indexes: tuple[int, ...] = ()
    analyzed: bytes | None = None
    table_offsets: tuple[int, ...] = ()

    @property
    def command(self) -> bytes:
        """The pickled class."""
        return self.call.commands[0]


def read_table_function(
    worker: ModuleType, call: TableCall, settings: Mapping[str, str], schema: str
) -> tuple[Function, Inputs, Dump]:
    """Build PySpark's worker function for the call; returns it with the converters of its arguments and results.

    worker: the module ``pyspark.worker``. schema: the JSON schema of the arguments.
    """
    layout = STREAMS.get(minor_version(pyspark.__version__))
    confs: tuple[Any, ...] = ()
    if layout is None:
        confs = worker.RunnerConf(dict(settings)), worker.EvalConf(_evaluation(call, schema))
        read = worker.read_udtf(worker.pickleSer, _message(call), call.eval_type, *confs)
    else:
        head = b""
        if not layout.settings:
            evaluation = _evaluation(call, schema)
            confs = worker.RunnerConf(pairs_stream(settings)), worker.EvalConf(pairs_stream(evaluation))
        elif call.eval_type != PICKLED_TABLE:
            head = pairs_stream(settings).getvalue() + _types(call, schema, layout.writes_input_types)
        stream = io.BytesIO(head + _stream(call, layout.named))
        read = worker.read_udtf(worker.pickleSer, stream, call.eval_type, *confs)
    function, _, deserializer, serializer = read
    return function, Inputs(deserializer, counts_groups=False), dumper(serializer)


def _evaluation(call: TableCall, schema: str) -> dict[str, str]:
    """Return the settings that describe the arguments to workers, by name."""
    if call.eval_type == PICKLED_TABLE:
        return {}
    if call.eval_type == BATCHED_TABLE:
        return {"table_arg_offsets": ",".join(map(str, call.table_offsets))}
    return {"input_type": schema}


def _types(call: TableCall, schema: str, has_types: bool) -> bytes:
    """Return the description of the arguments that follows the settings."""
    if not has_types:
        return b""
    return _integers(call.table_offsets) if call.eval_type == BATCHED_TABLE else text_bytes(schema)


def _message(call: TableCall) -> Any:
    """Build the message of Spark 4.3."""
    from pyspark.worker_message import UDTFInfo

    named = list(zip(call.call.offsets, call.call.names, strict=True))
    return UDTFInfo(
        args=[offset for offset, name in named if not name],
        kwargs={name: offset for offset, name in named if name},
        partition_child_indexes=list(call.partition_indexes),
        pickled_analyze_result=None if call.analyzed is None else memoryview(call.analyzed),
        handler=memoryview(call.command),
        return_type=call.returns,
        name=call.name,
    )


def _stream(call: TableCall, has_names: bool) -> bytes:
    """Build the part after the settings for releases before 4.3. has_names: arguments have names, as from 4.0 on."""
    parts = argument_bytes(call.call, has_names)
    if has_names:
        parts.append(_integers(call.partition_indexes))
        parts += (
            [flag_bytes(False)] if call.analyzed is None else [flag_bytes(True), sized_bytes(call.analyzed)]
        )
    parts += [sized_bytes(call.command), text_bytes(call.returns)]
    if has_names:
        parts.append(text_bytes(call.name))
    return b"".join(parts)


def _integers(values: tuple[int, ...]) -> bytes:
    return struct.pack(f"!{len(values) + 1}i", len(values), *values)

"""What PySpark's workers of each release read: batches, groups and pairs of groups as streams, layouts of the message."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from kquery_spark.errors import KQueryError
from kquery_spark.spark_bridge.frames.pyspark_names import PythonEvalType
from kquery_spark.spark_bridge.python.call import PythonCall, PythonFunction
from kquery_spark.spark_bridge.python.inputs import Inputs
from kquery_spark.spark_bridge.python.streams import STREAMS, counts_groups

BATCHES = [pa.RecordBatch.from_pydict({"a": values}) for values in ([1, 2], [3])]


class OneStream:
    """As PySpark's deserializers of single batches: a group is a batch before 4.1."""

    def load_stream(self, stream: io.BytesIO) -> Iterator[Any]:
        for batch in pa.ipc.open_stream(stream):
            yield batch.to_pydict()


class Counted:
    """As PySpark's deserializers of groups since 4.1, and of pairs in all releases."""

    def load_stream(self, stream: io.BytesIO) -> Iterator[Any]:
        while count := struct.unpack("!i", stream.read(4))[0]:
            yield [pa.ipc.open_stream(stream).read_all().to_pydict() for _ in range(count)]
        assert not stream.read()


class ArrowStreamGroupSerializer:
    """As PySpark's of this name, which gives the batches as they are."""


def test_batches_and_groups_reach_each_release() -> None:
    whole = {"a": [1, 2, 3]}
    assert list(Inputs(OneStream(), False).batch(BATCHES[0])) == [{"a": [1, 2]}]
    assert list(Inputs(OneStream(), False).group(iter(BATCHES[:1]))) == [{"a": [1, 2]}]
    assert list(Inputs(Counted(), True).group(iter(BATCHES))) == [[whole]]
    for counts in (True, False):
        assert list(Inputs(Counted(), counts).cogroup(BATCHES, BATCHES[1:])) == [[whole, {"a": [3]}]]
    plain = Inputs(ArrowStreamGroupSerializer(), True)
    (group,) = plain.group(iter(BATCHES))
    assert [batch is given for batch, given in zip(group, BATCHES, strict=True)] == [True, True]
    assert next(plain.batch(BATCHES[0])) is BATCHES[0]
    assert list(plain.cogroup(BATCHES, BATCHES)) == [(BATCHES, BATCHES)]


def test_a_group_of_several_batches_is_none_before_4_1() -> None:
    with pytest.raises(KQueryError, match="does not fit one Arrow batch"):
        Inputs(OneStream(), False).group(iter(BATCHES))
    assert [counts_groups(v) for v in ("3.5.4", "4.0.1", "4.1.0", "4.2.1", "4.3.0")] == [False, False, True, True, True]  # fmt: skip


@pytest.mark.parametrize(
    ("release", "kind", "flags"),
    [
        ((3, 5), "SQL_GROUPED_AGG_PANDAS_UDF", False),
        ((4, 0), "SQL_GROUPED_AGG_PANDAS_UDF", True),
        ((4, 0), "SQL_COGROUPED_MAP_PANDAS_UDF", False),
        ((4, 1), "SQL_MAP_PANDAS_ITER_UDF", False),
        ((4, 1), "SQL_WINDOW_AGG_PANDAS_UDF", True),
        ((4, 2), "SQL_GROUPED_MAP_PANDAS_UDF", True),
    ],
)
def test_which_arguments_have_names(release: tuple[int, int], kind: str, flags: bool) -> None:
    eval_type = getattr(PythonEvalType, kind)
    layout = STREAMS[release]
    written = layout.written(eval_type, [PythonCall((PythonFunction(b"code"),), (7,), ("",))], {}, "").read()
    command = struct.pack("!i4s", 4, b"code")
    argument = struct.pack("!i?", 7, False) if flags else struct.pack("!i", 7)
    end = struct.pack("!q", 0) if layout.writes_result_ids else b""
    assert written.endswith(struct.pack("!ii", 1, 1) + argument + struct.pack("!i", 1) + command + end)

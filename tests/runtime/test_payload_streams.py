"""Payloads of several stages in one stream: each stage's payloads are read in order, and few bytes wait in memory."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from kquery_spark.physical.operators import Metrics
from kquery_spark.runtime.spark.payload_streams import PayloadSource, PayloadStreams
from kquery_spark.runtime.spark.worker import PAYLOAD_SCHEMA
from tests.physical.harness import open_files

SIZE = 1 << 16


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    return tmp_path


def payload(tag: int, number: int) -> bytes:
    return bytes([tag, number]) * (SIZE // 2)


def rows(tags: list[int], at_once: int = 1) -> Iterator[pa.RecordBatch]:
    """Payload rows with these tags; the payloads of each tag are numbered from 0 on."""
    for start in range(0, len(tags), at_once):
        part = tags[start : start + at_once]
        cells = [payload(tag, tags[: start + i].count(tag)) for i, tag in enumerate(part)]
        yield pa.RecordBatch.from_arrays(
            [pa.array(part, pa.int32()), pa.array([0] * len(part), pa.int32()), pa.array(cells)],
            schema=PAYLOAD_SCHEMA,
        )


def sources(**readings: int) -> dict[str, PayloadSource]:
    return {name: PayloadSource(tag, n, Metrics()) for tag, (name, n) in enumerate(readings.items())}


@pytest.mark.parametrize("max_bytes", [0, 3 * SIZE, 1 << 30])
@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_each_reader_gets_its_payloads_in_order(max_bytes: int, at_once: int, scratch: Path) -> None:
    tags = np.random.default_rng(at_once).integers(0, 3, 40).tolist()
    each = sources(a=1, b=1, c=2)
    with PayloadStreams(rows(tags, at_once), each, max_bytes) as streams:
        for name in ("c", "b", "c", "a"):
            tag = each[name].tag
            want = [payload(tag, i) for i in range(tags.count(tag))]
            assert [p.to_pybytes() for p in streams.read(name)] == want
        assert list(streams.read("a")) == list(streams.read("b")) == []
    spilled = sum(source.metrics.extra.get("spilled_bytes", 0) for source in each.values())
    assert (spilled > 0) is (max_bytes < 1 << 30)
    assert open_files(scratch) == []


def waiting_bytes(streams: PayloadStreams) -> int:
    """Return the size of the payloads in memory. They are copies that neither Arrow's memory pool nor Python counts."""
    return sum(p.size for waiting in streams._waiting.values() for p in waiting if isinstance(p, pa.Buffer))


@pytest.mark.parametrize("readings", [1, 2])
@pytest.mark.parametrize("at_once", [1, 8])
def test_few_bytes_wait_in_memory(at_once: int, readings: int) -> None:
    tags = [0, 1] * 200
    gc.collect()
    before = pa.total_allocated_bytes()
    with PayloadStreams(rows(tags, at_once), sources(probe=1, build=readings), 10 * SIZE) as streams:
        built = 0
        for each in streams.read("build"):
            built += each.size
            del each
            assert waiting_bytes(streams) <= (10 + at_once) * SIZE
            # no batch is kept for the payloads that wait
            assert pa.total_allocated_bytes() - before < (1 + 2 * at_once) * SIZE
        assert built == 200 * SIZE
        assert sum(each.size for each in streams.read("probe")) == 200 * SIZE


def test_the_scratch_file_is_closed_if_the_remaining_rows_cannot_be_read(scratch: Path) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from rows([0, 1] * 3)
        raise OSError("the stream has ended")

    with (
        pytest.raises(OSError, match="stream has ended") as error,
        PayloadStreams(failing(), sources(a=1, b=1), 0) as streams,
    ):
        for _ in range(3):
            next(streams.read("b"))
        assert open_files(scratch)
    assert error.value.__traceback__ is not None  # it keeps the frames, and so the streams
    assert open_files(scratch) == []


def test_all_rows_are_read_at_the_end_unless_the_task_failed() -> None:
    stream = rows([0, 1] * 3)
    with PayloadStreams(stream, sources(a=1, b=1), 0) as streams:
        next(streams.read("a"))
    assert next(stream, None) is None
    stream = rows([0, 1] * 3)
    with pytest.raises(KeyError), PayloadStreams(stream, sources(a=1, b=1), 0) as streams:
        raise KeyError
    assert next(stream, None) is not None

"""What runs in Spark's Python workers: one stage's plan over one partition.

A function is shipped by reference with the stage as bytes; a worker decodes a stage once and keeps it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.config.engine import EngineConfig
from kquery_spark.config.memory import ContainerFacts, with_budget
from kquery_spark.errors import PlanError
from kquery_spark.kernels.zones import ZoneTable, adopt
from kquery_spark.physical.operators import PhysicalPlan, ReadExec, TaskContext
from kquery_spark.physical.worker_cache import worker_cache
from kquery_spark.runtime.spark.archives import read_archives_once
from kquery_spark.runtime.spark.metering import SeveralMeters
from kquery_spark.runtime.spark.partition_keys import partition_keys, partitions_of
from kquery_spark.runtime.spark.spill_total import SparkSpillMeter
from kquery_spark.sources.base import Split
from kquery_spark.sources.deletes.live_rows import KEPT_POSITIONS
from kquery_spark.sources.footers import PARQUET_FOOTERS
from kquery_spark.sources.hadoop.hdfs import HdfsCluster, connect_clusters
from kquery_spark.sources.object_stores.connections import connect
from kquery_spark.sources.object_stores.store import ObjectStore
from kquery_spark.sources.request_limit import limit_requests
from kquery_spark.stages.graph import Stage, reads
from kquery_spark.stages.payload import decode_payload, encode, one_cell, partitioned, result_pieces
from kquery_spark.stages.serialization import from_bytes
from kquery_spark.task_errors import task_error
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch, cut

if TYPE_CHECKING:
    from kquery_spark.runtime.task_meter import TaskMeter
    from kquery_spark.spark_bridge.plan.catalyst_plans import SharedBytes

PAYLOAD_SCHEMA = pa.schema([("stage", pa.int32()), ("partition", pa.int32()), ("payload", pa.binary())])
TOO_MUCH = -1
"""The tag of the last payload row of a task that stopped because it wrote more than it may."""
_TOO_MUCH_ROW = pa.RecordBatch.from_pydict(
    {"stage": [TOO_MUCH], "partition": [0], "payload": [b""]}, PAYLOAD_SCHEMA
)

_stages: OrderedDict[bytes, Stage] = OrderedDict()
_MAX_CACHED_STAGES = 64
_RESULT_PAYLOAD_BYTES = 512 * 1024  # larger ones the JVM copies less fast
# of mallopt(3): free memory to keep at the top of the heap, to ask for at once, and the size from which arrays stay outside
_TRIM, _PAD, _MAP = -1, -2, -3
_MALLOC = ((_TRIM, 256 << 20), (_PAD, 16 << 20), (_MAP, 64 << 20))
_HEAP_BUDGET_DIVISOR = 8  # of a small budget, what freed memory may stay with the process


@cache
def tune_process() -> None:
    """Make a process a good place to run tasks in; once.

    The garbage collector is spared what has been imported, as PySpark has it look at everything after each task, which
    took 30 ms and more. What is garbage now is collected first; later garbage is still found.

    The C library keeps freed memory for the next arrays. By default it gives those of some megabytes, as numpy makes
    them for every batch, back to the system and gets new pages for the next: up to half of the time of an aggregation.

    Archives on the path are read once and not before each task (``read_archives_once``).
    """
    read_archives_once()
    _set_heap(_MALLOC)
    gc.collect()
    gc.freeze()


def _set_heap(options: Iterable[tuple[int, int]]) -> None:
    with contextlib.suppress(OSError, AttributeError):  # not the GNU C library
        library = ctypes.CDLL(None)
        for option, nbytes in options:
            library.mallopt(option, nbytes)


@cache
def fit_heap(memory_bytes: int) -> None:
    """Have the C library keep less freed memory where a task may hold little; for the last budget of this process."""
    share = memory_bytes // _HEAP_BUDGET_DIVISOR
    _set_heap((option, min(nbytes, max(1 << 20, share))) for option, nbytes in _MALLOC)


class RowEncoding(Enum):
    """How the last stage gives its rows to Spark; the stages before it always give payload rows."""

    COLUMNS = "columns"
    """As the result's columns, which Spark takes apart into rows."""
    PAYLOADS = "payloads"
    """As payload rows, like those of a shuffle, which Spark only passes on to the driver."""


def _stage(data: bytes) -> Stage:
    stage = _stages.get(data)
    if stage is None:
        stage = _stages[data] = from_bytes(data, Stage)
        while len(_stages) > _MAX_CACHED_STAGES:
            _stages.popitem(last=False)
    else:
        _stages.move_to_end(data)
    return stage


@dataclass(frozen=True)
class RowExchange:
    """How the tasks of a stage exchange rows with Spark.

    number: the stage's tag on the rows it writes. sources: for a stage that reads stages, their tags by input id. names:
    result column names when this is the last stage. encoding: of the last stage's rows. limit: bytes that a task which is no
    last one may write. hash_partitioned: whether Spark sends a row to the partition that its number hashes to.
    """

    number: int
    sources: dict[str, int]
    names: list[str] | None = None
    encoding: RowEncoding = RowEncoding.COLUMNS
    limit: int | None = None
    hash_partitioned: bool = False


@dataclass(frozen=True)
class StageTask:
    """Callable given to ``mapInArrow``.

    stage and config: serialized; a large stage is delivered beside the task. container: what the driver knows of the memory
    of executors. stores and clusters: how the buckets and the clusters of HDFS are reached that the stage reads. zones:
    those that are not as each machine's data say.
    """

    stage: bytes | SharedBytes
    config: bytes
    rows: RowExchange
    meter: TaskMeter | None = None
    container: ContainerFacts | None = None
    stores: Sequence[ObjectStore] = ()
    clusters: Sequence[HdfsCluster] = ()
    zones: Sequence[ZoneTable] = ()

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the stage over one Spark partition; TaskError for whatever goes wrong."""
        try:
            yield from self._run(batches)
        except Exception as error:
            raise task_error(error) from error

    def with_shared_part(self, share: Callable[[bytes], SharedBytes]) -> StageTask:
        """The task whose stage Spark delivers once to each executor, by a file; how stores are reached stays in the task."""
        return self if not isinstance(self.stage, bytes) else replace(self, stage=share(self.stage))

    def _run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tune_process()
        config = from_bytes(self.config, EngineConfig)
        limit_requests(config.request_seconds)
        connect(self.stores)
        connect_clusters(self.clusters)
        adopt(*self.zones)
        retained = worker_cache().retained_bytes() + PARQUET_FOOTERS.nbytes + KEPT_POSITIONS.nbytes
        config = with_budget(config, self.container or ContainerFacts(), retained)
        fit_heap(config.memory_bytes)
        meters = (SparkSpillMeter(), *(() if self.meter is None else (self.meter,)))
        data = self.stage if isinstance(self.stage, bytes) else self.stage.value
        return StageRun(_stage(data), config, self.rows, SeveralMeters(meters))(batches)


@dataclass(frozen=True)
class StageRun:
    """A task of a stage: the same as in ``StageTask``, decoded."""

    stage: Stage
    config: EngineConfig
    rows: RowExchange
    meter: TaskMeter | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What the stage makes of the numbers of map tasks, of payload rows, or of rows handed over."""
        stage, config = self.stage, self.config
        if stage.is_map:
            for batch in batches:
                for index in batch.column(0).to_pylist():
                    yield from self._emit(TaskContext(config=config, splits=stage.tasks[index].as_dict()))
        elif self.rows.sources:
            splits: dict[int, tuple[Split, ...]] = {}
            if stage.reads_files:
                index, batches = self._numbered(batches)
                splits = stage.tasks[index].as_dict()
            inputs = self._stage_inputs(batches)
            yield from self._emit(TaskContext(config=config, splits=splits, inputs=inputs))
        else:
            (name,) = stage.inputs
            schema = _schema_of(stage, name)
            reader = _once(Batch.from_arrow(b, schema) for b in batches)
            yield from self._emit(TaskContext(config=config, inputs={name: reader}))

    def _stage_inputs(self, batches: Iterator[pa.RecordBatch]) -> dict[str, Callable[[], Iterator[Batch]]]:
        """Payload rows by the stage that wrote them; with one source that is read once they stream."""
        stage = self.stage
        count = Counter(reads(stage.plan))
        if len(self.rows.sources) == 1 and count.total() == 1:
            (name,) = self.rows.sources
            schema = _schema_of(stage, name)
            stream = (decode_payload(p, schema) for b in batches for p in _payloads(b))
            return {name: _once(stream)}
        by_tag: dict[int, list[pa.Buffer]] = {tag: [] for tag in self.rows.sources.values()}
        for batch in batches:
            for tag, payload in zip(batch.column(0).to_pylist(), _payloads(batch), strict=True):
                by_tag[tag].append(payload)
        return {
            name: _decoder(by_tag[tag], _schema_of(stage, name), count[name])
            for name, tag in self.rows.sources.items()
        }

    def _emit(self, context: TaskContext) -> Iterator[pa.RecordBatch]:
        """The stage's output; the operators' metrics are reported after the last row that is asked for."""
        if self.meter is None:
            yield from self._run(context)
            return
        sent = 0
        try:
            for batch in self._run(context):
                sent += batch.nbytes
                yield batch
        finally:
            self.meter.add(self.stage, context, sent)

    def _run(self, context: TaskContext) -> Iterator[pa.RecordBatch]:
        stage, schema, config = self.stage, self.stage.plan.schema, context.config
        rows = stage.plan.run(context)
        if stage.output is not None:
            written, count = 0, stage.output.count
            numbers = (
                partition_keys(count) if self.rows.hash_partitioned else np.arange(count, dtype=np.int32)
            )
            for target, batch in partitioned(rows, stage.output, schema, config.payload_bytes):
                payload = self._payload(int(numbers[target]), batch)
                written += payload.nbytes
                if self.rows.limit is not None and written > self.rows.limit:
                    yield _TOO_MUCH_ROW
                    return
                yield payload
        elif self.rows.encoding is RowEncoding.PAYLOADS:
            for batch in result_pieces(rows, schema, _RESULT_PAYLOAD_BYTES):
                yield self._payload(0, batch)
        else:
            to_rows = Batch.to_spark if t.YEAR_MONTH in schema.types else Batch.to_arrow
            for batch in rows:
                for piece in cut(batch, config.batch_rows):
                    part = to_rows(piece)
                    yield part.rename_columns(self.rows.names) if self.rows.names is not None else part

    def _payload(self, target: int, batch: Batch) -> pa.RecordBatch:
        numbers = [pa.array([self.rows.number], pa.int32()), pa.array([target], pa.int32())]
        return pa.RecordBatch.from_arrays([*numbers, one_cell(encode(batch))], schema=PAYLOAD_SCHEMA)

    def _numbered(self, batches: Iterator[pa.RecordBatch]) -> tuple[int, Iterator[pa.RecordBatch]]:
        """The number of the task that these rows were sent to, and the rows; tasks that read files get at least one row."""
        held = list(batches)
        numbers = {number for batch in held for number in pc.unique(batch.column(1)).to_pylist()}
        if len(numbers) != 1:
            raise PlanError(
                f"a task was given the rows of {len(numbers)} tasks, so it cannot tell which files to read"
            )
        number = numbers.pop()
        if self.rows.hash_partitioned:
            number = int(partitions_of(np.array([number], np.int32), len(self.stage.tasks))[0])
        return number, iter(held)


def _payloads(batch: pa.RecordBatch) -> list[pa.Buffer]:
    """The payload cells as buffers that share the batch's memory."""
    return [cell.as_buffer() for cell in batch.column(2)]


def _decoder(payloads: list[pa.Buffer], schema: pa.Schema, times: int) -> Callable[[], Iterator[Batch]]:
    """Payloads that are read once are let go one by one."""

    def read() -> Iterator[Batch]:
        if times > 1:
            yield from (decode_payload(p, schema) for p in payloads)
            return
        while payloads:
            yield decode_payload(payloads.pop(0), schema)

    return read


def _once(stream: Iterable[Batch]) -> Callable[[], Iterator[Batch]]:
    return lambda: iter(stream)


def _schema_of(stage: Stage, input_id: str) -> pa.Schema:
    def find(node: PhysicalPlan) -> pa.Schema | None:
        if isinstance(node, ReadExec) and node.input_id == input_id:
            return node.schema
        return next((s for s in map(find, node.children) if s is not None), None)

    schema = find(stage.plan)
    assert schema is not None
    return schema

"""The code that runs in Spark's Python workers: one stage's plan over one partition.

The function is pickled by reference, with the stage as bytes. A worker decodes each stage once and caches it.
"""

from __future__ import annotations

import gc
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.config.engine import EngineConfig
from kquery_spark.config.memory import ContainerFacts, with_budget
from kquery_spark.errors import PlanError
from kquery_spark.kernels.zones import ZoneTable, adopt_tables
from kquery_spark.physical.operators import ReadExec, TaskContext
from kquery_spark.physical.operators.base import walk_operators
from kquery_spark.physical.worker_cache import worker_cache
from kquery_spark.runtime.heap import fit_worker_heap, tune_worker_heap
from kquery_spark.runtime.spark.archives import read_archives_once
from kquery_spark.runtime.spark.metering import SeveralMeters
from kquery_spark.runtime.spark.partition_keys import partition_keys, partitions_of
from kquery_spark.runtime.spark.payload_streams import PayloadSource, PayloadStreams
from kquery_spark.runtime.spark.spill_total import SparkSpillMeter
from kquery_spark.sources.base import Split
from kquery_spark.sources.deletes.live_rows import DELETION_VECTOR_CACHE
from kquery_spark.sources.deletes.position_deletes import POSITION_DELETE_CACHE
from kquery_spark.sources.footers import PARQUET_FOOTERS
from kquery_spark.sources.hadoop.hdfs import HdfsCluster, connect_clusters
from kquery_spark.sources.object_stores.connections import connect
from kquery_spark.sources.object_stores.store import ObjectStore
from kquery_spark.sources.request_limit import limit_requests
from kquery_spark.stages import serializable
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
LIMIT_REACHED_TAG = -1
"""The tag of the last payload row of a task that stopped because it reached its limit of bytes."""
_LIMIT_REACHED_ROW = pa.RecordBatch.from_pydict(
    {"stage": [LIMIT_REACHED_TAG], "partition": [0], "payload": [b""]}, PAYLOAD_SCHEMA
)

_stages: OrderedDict[bytes, Stage] = OrderedDict()
_MAX_CACHED_STAGES = 64
# Payloads that wait to be read, and rows that wait to be written, may each use the budget divided by this number.
_WAITING_BUDGET_DIVISOR = 4
_RESULT_PAYLOAD_BYTES = 512 * 1024  # the JVM copies larger payloads more slowly


@cache
def tune_process() -> None:
    """One-time worker setup: load the plans' classes, freeze the garbage collector's heap, tune malloc, cache zip archives.

    - Reading a first plan imports all sources, which takes 0.1 s. Workers that are forked from the daemon find them loaded.
    - PySpark runs the garbage collector after each task, which takes 30 ms and more for all imported objects. After a first
      collection, ``gc.freeze`` excludes the objects that exist now. Later garbage is still found.
    - Freed memory stays in the heap (``runtime/heap.py``).
    - Zip archives on the path are not read again before each task (``read_archives_once``).
    """
    read_archives_once()
    serializable.registry()
    tune_worker_heap()
    gc.collect()
    gc.freeze()


class RowEncoding(Enum):
    """How the last stage returns its rows to Spark. The stages before it always return payload rows."""

    COLUMNS = "columns"
    """As the columns of the result, which Spark converts to rows."""
    PAYLOADS = "payloads"
    """As payload rows, like those of a shuffle, which Spark only copies to the driver."""


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

    number: the tag of the stage in the payload rows that it writes. sources: the tags of the stages that it reads, by input
    id. names: the result's column names, for the last stage. encoding: how the last stage returns its rows. limit: the
    bytes that a task may write, for other stages (None: no limit). hash_partitioned: True if Spark hashes the partition
    column of a payload row. Then the column has a key with the right hash instead of the partition (see ``partition_keys``).
    """

    number: int
    sources: dict[str, int]
    names: list[str] | None = None
    encoding: RowEncoding = RowEncoding.COLUMNS
    limit: int | None = None
    hash_partitioned: bool = False


@dataclass(frozen=True)
class StageTask:
    """The function that ``mapInArrow`` calls.

    stage and config: serialized; a large stage is delivered beside the task. container: the driver's knowledge of the
    executors' memory. stores and clusters: the connection settings of the object stores and HDFS clusters that the stage
    reads. zones: time zones whose rules differ from those of the machine.
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
        """Run the stage over one Spark partition. Raises a TaskError for every error."""
        try:
            yield from self._run(batches)
        except Exception as error:
            raise task_error(error) from error

    def with_shared_part(self, share: Callable[[bytes], SharedBytes]) -> StageTask:
        """Return the task with its stage as a file that Spark sends to each executor once.

        The connection settings (``stores``, ``clusters``) remain in the task.
        """
        return self if not isinstance(self.stage, bytes) else replace(self, stage=share(self.stage))

    def _run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tune_process()
        config = from_bytes(self.config, EngineConfig)
        limit_requests(config.request_seconds)
        connect(self.stores)
        connect_clusters(self.clusters)
        adopt_tables(*self.zones)
        caches = (PARQUET_FOOTERS, DELETION_VECTOR_CACHE, POSITION_DELETE_CACHE)
        retained = worker_cache().retained_bytes() + sum(c.nbytes for c in caches)
        config = with_budget(config, self.container or ContainerFacts(), retained)
        fit_worker_heap(config.memory_bytes)
        meters = (SparkSpillMeter(), *(() if self.meter is None else (self.meter,)))
        data = self.stage if isinstance(self.stage, bytes) else self.stage.value
        return StageRun(_stage(data), config, self.rows, SeveralMeters(meters))(batches)


@dataclass(frozen=True)
class StageRun:
    """A task of a stage, like ``StageTask``, but with the stage and the settings already decoded."""

    stage: Stage
    config: EngineConfig
    rows: RowExchange
    meter: TaskMeter | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the stage and yield its output. The input depends on what the stage reads.

        - Only files: each row is the number of a task.
        - Other stages: payload rows.
        - A Spark input: its rows.
        """
        stage, config = self.stage, self.config
        if stage.is_map:
            for batch in batches:
                for index in batch.column(0).to_pylist():
                    yield from self._emit(TaskContext(config=config, splits=stage.tasks[index].as_dict()))
        elif self.rows.sources:
            splits: dict[int, tuple[Split, ...]] = {}
            if stage.reads_files:
                index, batches = self._find_task_number(batches)
                splits = stage.tasks[index].as_dict()
            context = TaskContext(config=config, splits=splits)
            with self._payload_streams(batches, context) as streams:
                context.inputs = {name: self._reader(streams, name) for name in self.rows.sources}
                yield from self._emit(context)
        else:
            (name,) = stage.inputs
            schema = _leaf(stage, name).schema
            reader = _single_use(Batch.from_arrow(b, schema) for b in batches)
            yield from self._emit(TaskContext(config=config, inputs={name: reader}))

    def _payload_streams(self, batches: Iterator[pa.RecordBatch], context: TaskContext) -> PayloadStreams:
        """Return the payloads of all stages that are read. They may use a part of the memory budget while they wait."""
        count = Counter(reads(self.stage.plan))
        sources = {
            name: PayloadSource(tag, count[name], context.metrics_of(_leaf(self.stage, name)))
            for name, tag in self.rows.sources.items()
        }
        return PayloadStreams(batches, sources, context.config.memory_bytes // _WAITING_BUDGET_DIVISOR)

    def _reader(self, streams: PayloadStreams, name: str) -> Callable[[], Iterator[Batch]]:
        schema = _leaf(self.stage, name).schema
        return lambda: (decode_payload(payload, schema) for payload in streams.read(name))

    def _emit(self, context: TaskContext) -> Iterator[pa.RecordBatch]:
        """Yield the stage's output, and report the operators' metrics when it ends or the consumer stops reading."""
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
        """Run the plan and yield its rows: partitioned payloads, result payloads, or result columns."""
        stage, schema, config = self.stage, self.stage.plan.schema, context.config
        rows = stage.plan.run(context)
        if stage.output is not None:
            written, count = 0, stage.output.count
            numbers = (
                partition_keys(count) if self.rows.hash_partitioned else np.arange(count, dtype=np.int32)
            )
            limits = config.payload_bytes, config.memory_bytes // _WAITING_BUDGET_DIVISOR
            for target, batch in partitioned(rows, stage.output, schema, *limits):
                payload = self._payload(int(numbers[target]), batch)
                written += payload.nbytes
                if self.rows.limit is not None and written > self.rows.limit:
                    yield _LIMIT_REACHED_ROW
                    return
                yield payload
        elif self.rows.encoding is RowEncoding.PAYLOADS:
            for batch in result_pieces(rows, _RESULT_PAYLOAD_BYTES):
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

    def _find_task_number(self, batches: Iterator[pa.RecordBatch]) -> tuple[int, Iterator[pa.RecordBatch]]:
        """Return the number of the task that these rows were sent to, and the rows. There is always at least one row."""
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            raise PlanError("a task received no rows, so the files that it has to read are unknown")
        number = first.column(1)[0].as_py()

        def checked() -> Iterator[pa.RecordBatch]:
            for batch in chain([first], batches):
                if pc.unique(batch.column(1)).to_pylist() not in ([], [number]):
                    raise PlanError(
                        "a task received the rows of several tasks, so the files that it has to read are unknown"
                    )
                yield batch

        if self.rows.hash_partitioned:  # the number is a key, and its hash gives the partition
            index = int(partitions_of(np.array([number], np.int32), len(self.stage.tasks))[0])
            return index, checked()
        return number, checked()


def _single_use(stream: Iterable[Batch]) -> Callable[[], Iterator[Batch]]:
    return lambda: iter(stream)


def _leaf(stage: Stage, input_id: str) -> ReadExec:
    """Return the first leaf of the stage's plan that reads an input."""
    operators = (node for node, _ in walk_operators(stage.plan))
    return next(node for node in operators if isinstance(node, ReadExec) and node.input_id == input_id)

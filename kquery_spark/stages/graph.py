"""The stage graph: each stage runs one plan in several tasks, and reads the rows that earlier stages wrote.

A physical plan is cut at its exchanges. ``SELECT k, count(*) FROM t GROUP BY k`` becomes two stages:

    stage-1: 8 task(s) -> hash(k) into 4             stage-2: 4 task(s), reads stage-1 -> result
      AggregateExec: partial                           AggregateExec: final
        ScanExec: t                                      ReadExec: stage-1

Each task of stage-1 scans some of the splits of ``t`` and sends each row to one of four partitions. Task i of stage-2 reads
partition i of the rows of all tasks of stage-1.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import PlanError
from kquery_spark.logical import format_plan
from kquery_spark.physical.operators import (
    ExchangeExec,
    Partitioning,
    PhysicalPlan,
    ReadExec,
    ReplicateExec,
    ScanExec,
)
from kquery_spark.physical.operators.base import walk_operators
from kquery_spark.sources.base import OPENING_BYTES, Split

_Share = dict[int, list[Split]]
"""The splits of one task, by scan id."""


@dataclass(frozen=True)
class TaskSplits:
    """The splits that one task reads, as pairs of a scan id and its splits."""

    scans: tuple[tuple[int, tuple[Split, ...]], ...]

    def as_dict(self) -> dict[int, tuple[Split, ...]]:
        """Return the splits by scan id."""
        return dict(self.scans)


@dataclass(frozen=True)
class Stage:
    """``plan`` runs once in each task, and its rows are partitioned by ``output`` (None: they are the query's result).

    ``tasks`` has the splits of each task. ``inputs`` are the ids that the ReadExec leaves refer to: a stage ("stage-1") or
    an input from Spark. A stage that reads other stages has as many tasks as their partitionings have partitions. Its tasks
    can also read files: then the other stages sent their rows by the key ranges or buckets of these files.
    """

    stage_id: str
    plan: PhysicalPlan
    output: Partitioning | None
    tasks: tuple[TaskSplits, ...]
    inputs: tuple[str, ...]

    @property
    def is_map(self) -> bool:
        """True if the stage reads only files, and neither other stages nor Spark."""
        return not self.inputs

    @property
    def reads_files(self) -> bool:
        """True if each task has its own splits to read."""
        return any(task.scans for task in self.tasks)


@dataclass(frozen=True)
class StageGraph:
    """Stages in topological order: each comes after the stages that it reads, and the last one returns the result.

    result_input_bytes: the expected bytes that the last stage reads from files (``work_bytes``) and from other stages.
    """

    stages: tuple[Stage, ...]
    result_input_bytes: float

    @property
    def result(self) -> Stage:
        """The last stage."""
        return self.stages[-1]

    def stage(self, stage_id: str) -> Stage | None:
        """Return the stage with this id; None if it is an input from Spark."""
        return next((s for s in self.stages if s.stage_id == stage_id), None)

    def __str__(self) -> str:
        lines = []
        for stage in self.stages:
            where = f"-> {stage.output}" if stage.output else "-> result"
            reads = f", reads {', '.join(stage.inputs)}" if stage.inputs else ""
            lines.append(f"{stage.stage_id}: {len(stage.tasks)} task(s){reads} {where}")
            lines.append(format_plan(stage.plan, 1))
        return "\n".join(lines)


def build_stages(plan: PhysicalPlan, config: EngineConfig, in_order: bool = False) -> StageGraph:
    """Cut the plan at its exchanges.

    in_order: the results of tasks will be concatenated in task order, so the tasks should read the files in order.
    """
    # ``cut`` and ``finish`` call each other: a stage ends at each exchange, and its plan is cut at the exchanges below. The
    # recursion finishes the stages bottom-up, so a stage is added after the stages that it reads.
    stages: list[Stage] = []
    # By ``id()`` of the exchange, because an exchange object that is in the plan twice becomes one stage, while two equal
    # exchanges stay two. The plan holds all of them, so no id is reused meanwhile.
    written: dict[int, ReadExec] = {}
    output_bytes: dict[str, float] = {}

    def cut(node: PhysicalPlan) -> PhysicalPlan:
        """Replace each exchange below the node by a ReadExec of the stage that it ends."""
        if isinstance(node, ExchangeExec):
            if id(node) not in written:
                stage_id = finish(node.child, node.partitioning)
                output_bytes[stage_id] = node.nbytes
                written[id(node)] = ReadExec(stage_id, node.schema)
            return written[id(node)]
        if not node.children:
            return node
        children = [cut(c) for c in node.children]
        return (
            node.with_children(children)
            if any(a is not b for a, b in zip(children, node.children, strict=True))
            else node
        )

    def finish(node: PhysicalPlan, output: Partitioning | None) -> str:
        """Add the stage that ends with ``node``, after the stages that it reads; return its id."""
        body = cut(node)
        stage_id = f"stage-{len(stages) + 1}"
        inputs = tuple(dict.fromkeys(reads(body)))
        counts = {s.output.count for s in stages if s.stage_id in inputs and s.output is not None}
        task_count = max(counts, default=1) if inputs else None
        body, tasks = _assign_splits(body, config, task_count, in_order or output is None)
        stages.append(Stage(stage_id, body, output, tasks, inputs))
        return stage_id

    finish(plan, None)
    last = stages[-1]
    read = sum(sum(work_bytes(scan.splits or ())) for scan in _scans(last.plan))
    read += sum(sum(work_bytes(splits)) for task in last.tasks for _, splits in task.scans)
    return StageGraph(tuple(stages), read + sum(output_bytes.get(i, 0.0) for i in last.inputs))


def reads(plan: PhysicalPlan) -> list[str]:
    """Return the input id of each leaf that reads a stage or an input from Spark; repeated if it is read repeatedly."""
    return [node.input_id for node, _ in walk_operators(plan) if isinstance(node, ReadExec)]


def _scans(plan: PhysicalPlan, replicated: bool = True) -> list[ScanExec]:
    """Return the scans of a plan. Without ``replicated``, omit those below a ReplicateExec, which every task reads."""
    if isinstance(plan, ReplicateExec) and not replicated:
        return []
    if isinstance(plan, ScanExec):
        return [plan]
    return [s for c in plan.children for s in _scans(c, replicated)]


def _assign_splits(
    plan: PhysicalPlan, config: EngineConfig, task_count: int | None, in_order: bool
) -> tuple[PhysicalPlan, tuple[TaskSplits, ...]]:
    """Assign the splits of the stage's scans to its tasks, balanced by bytes.

    task_count: the number of tasks, if other stages determine it. in_order: if the stage has a single scan, consecutive
    tasks read consecutive files.
    """
    scans = _scans(plan, replicated=False)
    ranged = {scan.scan_id: scan.shares for scan in scans if scan.shares}
    if ranged:
        shares = _shares_by_range(scans, ranged)
        if task_count is not None and task_count != len(shares):
            raise PlanError(
                f"a stage reads files for {len(shares)} tasks and rows that were sent to {task_count}"
            )
        return _with_tasks(plan, scans, shares)
    if task_count is not None:
        return plan, tuple(TaskSplits(()) for _ in range(task_count))
    count = _task_count(scans, config)
    if count == 1:
        return plan, (TaskSplits(()),)
    return _with_tasks(plan, scans, _even_shares(scans, count, in_order))


def work_bytes(splits: Sequence[Split]) -> list[int]:
    """Return the bytes that count for each split of a source when splits are divided among tasks.

    The first split of each file counts as OPENING_BYTES more.
    """
    opened: set[int] = set()
    work = []
    for split in splits:
        work.append(split.nbytes + (0 if split.file in opened else OPENING_BYTES))
        opened.add(split.file)
    return work


def _task_count(scans: list[ScanExec], config: EngineConfig) -> int:
    """Return the number of tasks: one per ``split_bytes``, rounded up to full waves of all cores, at most one per split.

    With 4 cores and 128 MiB per task, 1.1 GiB of splits are read by 12 tasks: three waves of four.
    """
    if any(scan.whole for scan in scans):
        return 1
    work = [nbytes for scan in scans for nbytes in work_bytes(scan.splits or ())]
    waves = math.ceil(sum(work) / (config.split_bytes * config.parallelism))
    return max(1, min(len(work), config.parallelism * waves))


def _even_shares(scans: list[ScanExec], count: int, in_order: bool) -> list[_Share]:
    """Divide the splits among ``count`` tasks by bytes. A single scan ``in_order`` keeps the order of its files."""
    shares: list[_Share] = [{} for _ in range(count)]
    heap = [(0, i) for i in range(count)]
    keeps_order = in_order and len(scans) == 1
    for scan in scans:
        splits = list(scan.splits or ())
        for split, target in _assign_in_order(splits, count) if keeps_order else _balance(splits, heap):
            shares[target].setdefault(scan.scan_id, []).append(split)
    return shares


def _shares_by_range(scans: list[ScanExec], ranged: dict[int, tuple[tuple[Split, ...], ...]]) -> list[_Share]:
    """Return the planner's shares. The splits of scans without shares (other inputs of a union) are balanced."""
    count = len(next(iter(ranged.values())))
    shares = [{scan_id: list(parts[i]) for scan_id, parts in ranged.items()} for i in range(count)]
    heap = [(sum(sum(work_bytes(part)) for part in share.values()), i) for i, share in enumerate(shares)]
    heapq.heapify(heap)
    for scan in scans:
        if scan.scan_id not in ranged:
            for split, target in _balance(list(scan.splits or ()), heap):
                shares[target].setdefault(scan.scan_id, []).append(split)
    return shares


def _with_tasks(
    plan: PhysicalPlan, scans: list[ScanExec], shares: list[_Share]
) -> tuple[PhysicalPlan, tuple[TaskSplits, ...]]:
    """Move the splits of these scans from the plan to the tasks."""
    scan_ids = {s.scan_id for s in scans}
    tasks = tuple(
        TaskSplits(tuple((scan_id, tuple(share.get(scan_id, ()))) for scan_id in sorted(scan_ids)))
        for share in shares
    )
    return _without_splits(plan, scan_ids), tasks


def _balance(splits: list[Split], heap: list[tuple[int, int]]) -> list[tuple[Split, int]]:
    """Assign each split, largest first, to the task with the fewest bytes so far. Return splits and tasks in file order.

    heap: pairs (sum of ``work_bytes``, task) of all tasks, which is updated.
    """
    placed, work = [], work_bytes(splits)
    for index in sorted(range(len(splits)), key=lambda i: -work[i]):
        load, target = heapq.heappop(heap)
        placed.append((index, target))
        heapq.heappush(heap, (load + work[index], target))
    return [(splits[index], target) for index, target in sorted(placed)]


def _assign_in_order(splits: list[Split], count: int) -> list[tuple[Split, int]]:
    """Assign consecutive splits to each task, with about equal bytes.

    A split belongs to the task in whose part of all bytes its middle lies: for 4 tasks and 400 bytes, a split of the bytes
    80 to 140 has its middle at 110, which is in the part of task 1 (100 to 200).
    """
    work = work_bytes(splits)
    total = max(sum(work), 1)
    placed, bytes_before = [], 0
    for split, nbytes in zip(splits, work, strict=True):
        placed.append((split, min(count - 1, (2 * bytes_before + nbytes) * count // (2 * total))))
        bytes_before += nbytes
    return placed


def _without_splits(plan: PhysicalPlan, scan_ids: set[int]) -> PhysicalPlan:
    """Remove the splits of these scans from the plan, because each task gets its own."""
    if isinstance(plan, ScanExec):
        return replace(plan, splits=None, shares=()) if plan.scan_id in scan_ids else plan
    if isinstance(plan, ReplicateExec) or not plan.children:
        return plan
    return plan.with_children([_without_splits(c, scan_ids) for c in plan.children])

"""The stage graph: each stage runs one plan in some tasks, and reads what earlier stages wrote."""

from __future__ import annotations

import heapq
import math
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
from kquery_spark.sources.base import Split

_Share = dict[int, list[Split]]
"""The splits of one task, by scan id."""


@dataclass(frozen=True)
class TaskSplits:
    """The splits one task reads, per scan."""

    scans: tuple[tuple[int, tuple[Split, ...]], ...]

    def as_dict(self) -> dict[int, tuple[Split, ...]]:
        """Splits by scan id."""
        return dict(self.scans)


@dataclass(frozen=True)
class Stage:
    """``plan`` runs once a task and its rows go to ``output`` (None: they are the query's result).

    ``tasks``: one entry per task with what it reads of files. ``inputs``: ids that ReadExec leaves refer to; a stage id
    ("stage-1") or a hand-over from Spark. A stage that reads other stages has as many tasks as their partitioning; its
    tasks may read files, too, to whose key ranges the other stages' rows were sent.
    """

    stage_id: str
    plan: PhysicalPlan
    output: Partitioning | None
    tasks: tuple[TaskSplits, ...]
    inputs: tuple[str, ...]

    @property
    def is_map(self) -> bool:
        """Whether the stage starts from files rather than from other stages or Spark."""
        return not self.inputs

    @property
    def reads_files(self) -> bool:
        """Whether each task has files of its own to read."""
        return any(task.scans for task in self.tasks)


@dataclass(frozen=True)
class StageGraph:
    """Stages in an order in which each comes after the ones it reads; the last one gives the result.

    gathered: about how many bytes the last stage takes in, from files and from other stages.
    """

    stages: tuple[Stage, ...]
    gathered: float

    @property
    def result(self) -> Stage:
        """The last stage."""
        return self.stages[-1]

    def stage(self, stage_id: str) -> Stage | None:
        """The stage of that id; None for a hand-over."""
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

    in_order: who runs the stages puts what tasks give together in the order of tasks, so theirs is to be that of files.
    """
    stages: list[Stage] = []
    written: dict[int, ReadExec] = {}  # by exchange: one that is in the plan twice is one stage
    crossing: dict[str, float] = {}

    def cut(node: PhysicalPlan) -> PhysicalPlan:
        if isinstance(node, ExchangeExec):
            if id(node) not in written:
                stage_id = finish(node.child, node.partitioning)
                crossing[stage_id] = node.nbytes
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
        body = cut(node)
        stage_id = f"stage-{len(stages) + 1}"
        inputs = tuple(dict.fromkeys(reads(body)))
        counts = {s.output.count for s in stages if s.stage_id in inputs and s.output is not None}
        readers = max(counts, default=1) if inputs else None
        body, tasks = _assign(body, config, readers, in_order or output is None)
        stages.append(Stage(stage_id, body, output, tasks, inputs))
        return stage_id

    finish(plan, None)
    last = stages[-1]
    read = sum(s.nbytes for scan in _scans(last.plan) for s in scan.splits or ())
    read += sum(s.nbytes for task in last.tasks for _, splits in task.scans for s in splits)
    return StageGraph(tuple(stages), read + sum(crossing.get(i, 0.0) for i in last.inputs))


def reads(plan: PhysicalPlan) -> list[str]:
    """The input of each leaf that reads a stage or rows of Spark."""
    if isinstance(plan, ReadExec):
        return [plan.input_id]
    return [i for c in plan.children for i in reads(c)]


def _scans(plan: PhysicalPlan, replicated: bool = True) -> list[ScanExec]:
    """The scans of a plan; not ``replicated``: those whose splits are shared out, none under a replicated build side."""
    if isinstance(plan, ReplicateExec) and not replicated:
        return []
    if isinstance(plan, ScanExec):
        return [plan]
    return [s for c in plan.children for s in _scans(c, replicated)]


def _assign(
    plan: PhysicalPlan, config: EngineConfig, readers: int | None, in_order: bool
) -> tuple[PhysicalPlan, tuple[TaskSplits, ...]]:
    """Share the splits of the stage's scans out among its tasks, balanced by bytes.

    in_order: where one scan alone is shared out, neighbouring tasks read neighbouring files.
    """
    scans = _scans(plan, replicated=False)
    ranged = {scan.scan_id: scan.shares for scan in scans if scan.shares}
    if ranged:
        shares = _shares_by_range(scans, ranged)
        if readers is not None and readers != len(shares):
            raise PlanError(f"files for {len(shares)} tasks meet rows that were sent to {readers}")
        return _with_tasks(plan, scans, shares)
    if readers is not None:
        return plan, tuple(TaskSplits(()) for _ in range(readers))
    count = _task_count(scans, config)
    if count == 1:
        return plan, (TaskSplits(()),)
    return _with_tasks(plan, scans, _even_shares(scans, count, in_order))


def _task_count(scans: list[ScanExec], config: EngineConfig) -> int:
    """As many tasks as the bytes ask for, in full waves of the parallelism, but no more than there are splits."""
    if any(scan.whole for scan in scans):
        return 1
    splits = [s for scan in scans for s in scan.splits or ()]
    waves = math.ceil(sum(s.nbytes for s in splits) / (config.split_bytes * config.parallelism))
    return max(1, min(len(splits), config.parallelism * waves))


def _even_shares(scans: list[ScanExec], count: int, in_order: bool) -> list[_Share]:
    """Splits for ``count`` tasks of about as many bytes; one scan alone ``in_order`` keeps the order of its files."""
    shares: list[_Share] = [{} for _ in range(count)]
    heap = [(0, i) for i in range(count)]
    keeps_order = in_order and len(scans) == 1
    for scan in scans:
        splits = list(scan.splits or ())
        for split, target in _in_order(splits, count) if keeps_order else _balanced(splits, heap):
            shares[target].setdefault(scan.scan_id, []).append(split)
    return shares


def _shares_by_range(scans: list[ScanExec], ranged: dict[int, tuple[tuple[Split, ...], ...]]) -> list[_Share]:
    """Splits by key range; scans without ranges (other inputs of a union) are balanced over the same tasks."""
    count = len(next(iter(ranged.values())))
    shares = [{scan_id: list(parts[i]) for scan_id, parts in ranged.items()} for i in range(count)]
    heap = [(sum(s.nbytes for part in share.values() for s in part), i) for i, share in enumerate(shares)]
    heapq.heapify(heap)
    for scan in scans:
        if scan.scan_id not in ranged:
            for split, target in _balanced(list(scan.splits or ()), heap):
                shares[target].setdefault(scan.scan_id, []).append(split)
    return shares


def _with_tasks(
    plan: PhysicalPlan, scans: list[ScanExec], shares: list[_Share]
) -> tuple[PhysicalPlan, tuple[TaskSplits, ...]]:
    """The plan without the splits of these scans, and the tasks that bring them."""
    scan_ids = {s.scan_id for s in scans}
    tasks = tuple(
        TaskSplits(tuple((scan_id, tuple(share.get(scan_id, ()))) for scan_id in sorted(scan_ids)))
        for share in shares
    )
    return _open(plan, scan_ids), tasks


def _balanced(splits: list[Split], heap: list[tuple[int, int]]) -> list[tuple[Split, int]]:
    """Give each split, largest first, to the task with the fewest bytes; tasks keep file order inside."""
    placed = []
    for index in sorted(range(len(splits)), key=lambda i: -splits[i].nbytes):
        load, target = heapq.heappop(heap)
        placed.append((index, target))
        heapq.heappush(heap, (load + splits[index].nbytes, target))
    return [(splits[index], target) for index, target in sorted(placed)]


def _in_order(splits: list[Split], count: int) -> list[tuple[Split, int]]:
    """Give the first splits to the first task, the next ones to the next; each gets about as many bytes."""
    total = max(sum(s.nbytes for s in splits), 1)
    placed, done = [], 0
    for split in splits:
        placed.append((split, min(count - 1, (2 * done + split.nbytes) * count // (2 * total))))
        done += split.nbytes
    return placed


def _open(plan: PhysicalPlan, scan_ids: set[int]) -> PhysicalPlan:
    """Take the splits out of the plan: each task brings its own."""
    if isinstance(plan, ScanExec):
        return replace(plan, splits=None, shares=()) if plan.scan_id in scan_ids else plan
    if isinstance(plan, ReplicateExec) or not plan.children:
        return plan
    return plan.with_children([_open(c, scan_ids) for c in plan.children])

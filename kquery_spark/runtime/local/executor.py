"""Run a stage graph in this process: one stage after another, its tasks in a pool of threads.

Arrow and numpy release the interpreter lock in their kernels, so threads use the cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from kquery_spark.config.engine import EngineConfig
from kquery_spark.physical.operators import Metrics, PhysicalPlan, TaskContext
from kquery_spark.stages.graph import Stage, StageGraph
from kquery_spark.stages.payload import partitioned
from kquery_spark.types.batch import Batch

Inputs = Mapping[str, Callable[[], Iterator[Batch]]]


@dataclass
class Run:
    """What a finished run gave: result batches in order, and metrics per stage and operator position."""

    schema: pa.Schema
    batches: list[Batch]
    metrics: dict[str, list[tuple[str, Metrics]]] = field(default_factory=dict)

    def to_arrow(self) -> pa.Table:
        """The result as a table of exactly the schema's types."""
        return pa.Table.from_batches([b.to_arrow() for b in self.batches], schema=self.schema)


def run_graph(graph: StageGraph, config: EngineConfig, inputs: Inputs | None = None) -> Run:
    """Run all stages; the first error of any task stops the run and is raised."""
    exchanged: dict[str, list[list[Batch]]] = {}
    run = Run(graph.result.plan.schema, [])
    with ThreadPoolExecutor(max_workers=max(1, config.parallelism)) as pool:
        for stage in graph.stages:
            contexts = [_context(stage, i, config, exchanged, inputs or {}) for i in range(len(stage.tasks))]
            futures = [pool.submit(_run_task, stage, context) for context in contexts]
            done, waiting = wait(futures, return_when=FIRST_EXCEPTION)
            for future in waiting:
                future.cancel()
            for future in done:
                future.result()
            results = [f.result() for f in futures]
            run.metrics[stage.stage_id] = _merge_metrics(stage.plan, contexts)
            if stage.output is None:
                run.batches = [batch for pieces in results for _, batch in pieces]
            else:
                targets: list[list[Batch]] = [[] for _ in range(stage.output.count)]
                for pieces in results:
                    for target, batch in pieces:
                        targets[target].append(batch)
                exchanged[stage.stage_id] = targets
    return run


def _context(
    stage: Stage, index: int, config: EngineConfig, exchanged: Mapping[str, list[list[Batch]]], inputs: Inputs
) -> TaskContext:
    readers: dict[str, Callable[[], Iterator[Batch]]] = {}
    for name in stage.inputs:
        readers[name] = partial(_read, exchanged[name], index) if name in exchanged else inputs[name]
    return TaskContext(config=config, splits=stage.tasks[index].as_dict(), inputs=readers)


def _read(targets: list[list[Batch]], index: int) -> Iterator[Batch]:
    yield from targets[index]


def _run_task(stage: Stage, context: TaskContext) -> list[tuple[int, Batch]]:
    batches = stage.plan.run(context)
    if stage.output is None:
        return [(0, b) for b in batches]
    return list(partitioned(batches, stage.output, stage.plan.schema, context.config.payload_bytes))


def _merge_metrics(plan: PhysicalPlan, contexts: list[TaskContext]) -> list[tuple[str, Metrics]]:
    """Sums over tasks, one entry an operator in printing order."""
    merged = []

    def visit(node: PhysicalPlan, depth: int) -> None:
        total = Metrics()
        for context in contexts:
            one = context.metrics.get(id(node))
            if one is not None:
                total.merge(one)
        merged.append(("  " * depth + node.label(), total))
        for child in node.children:
            visit(child, depth + 1)

    visit(plan, 0)
    return merged

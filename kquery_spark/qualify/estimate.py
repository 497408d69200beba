"""Estimates, with a range, the time that a query saves if the engine runs its supported nodes.

Idea: a node that took t task seconds on Spark takes t / f in the engine, where f is the measured speed-up of its kind of
work. Example: a join with 60 of a query's 100 task seconds and f = 5 saves 60 * (1 - 1/5) = 48 task seconds, 48 % of the
query. If stages ran for 20 of the query's 25 wall-clock seconds, the query saves 0.48 * 20 = 9.6 seconds, minus the fixed
costs of planning and of starting Python stages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kquery_spark.config.cost import CostModel
from kquery_spark.config.engine import EngineConfig
from kquery_spark.qualify.application import QueryRun
from kquery_spark.qualify.factors import FACTORS, SPEED_UP_ERROR, Factor
from kquery_spark.qualify.judgment import JudgedNode, RunsOn
from kquery_spark.qualify.operators import STEPS
from kquery_spark.qualify.wide_windows import output_rows, wide_row_seconds


@dataclass(frozen=True)
class Saving:
    """Seconds saved: the expected value and its range. Never negative, because a slower query falls back to Spark."""

    expected: float = 0.0
    low: float = 0.0
    high: float = 0.0

    def __add__(self, other: Saving) -> Saving:
        return Saving(self.expected + other.expected, self.low + other.low, self.high + other.high)


@dataclass(frozen=True)
class Estimate:
    """The estimate of one query: the engine's share of its task time, and the savings in wall-clock and task time."""

    engine_share: float
    wall: Saving
    tasks: Saving


def estimate(
    run: QueryRun,
    judged: Sequence[JudgedNode],
    seconds: Mapping[int, float],
    costs: CostModel,
    config: EngineConfig,
) -> Estimate:
    """Apply the measured factors to the task time of each node, and subtract the engine's fixed costs.

    seconds: the result of ``task_seconds``. The expected saving applies to the time in which stages ran, plus the cost
    model's share of the time between them. The low one applies to the time of the stages alone, the high one to the whole
    time from start to end.
    """
    nodes = [node for top in judged for node in top.walk()]
    engine = [node for node in nodes if node.runs is RunsOn.ENGINE]
    total = sum(seconds.values())
    supported = sum(seconds.get(id(node.node), 0.0) for node in engine)
    if not total or not supported or run.seconds is None or run.error:
        return Estimate(supported / total if total else 0.0, Saving(), Saving())
    copying = sum(wide_row_seconds(node, run, costs) for node in engine) / total
    expected, low, high = (
        max(0.0, _saved_share(engine, seconds, total, end) - copying) for end in ("expected", "low", "high")
    )
    sure = [node for node in engine if not node.node.is_cut_off]
    low = max(0.0, min(low, _saved_share(sure, seconds, total, "low") - copying))
    fixed = _fixed_seconds(run, nodes, costs, config)
    cores = max(1.0, _running_tasks(run))
    between = costs.step_seconds * sum(node.kind in STEPS for node in engine)
    wall = Saving(
        max(0.0, min(run.seconds, run.stage_seconds + between) * expected - fixed),
        max(0.0, min(run.seconds, run.stage_seconds) * low - fixed),
        max(0.0, run.seconds * high - costs.planning_seconds),
    )
    # a second of fixed wall-clock cost occupies as many cores as the query used
    tasks = Saving(*(max(0.0, total * share - fixed * cores) for share in (expected, low, high)))
    return Estimate(supported / total, _widened(wall, run.seconds), _widened(tasks, total))


def _widened(saving: Saving, seconds: float) -> Saving:
    """Widen the range of a saving to at least the error that estimates had in measurements, ``SPEED_UP_ERROR``.

    Example: of 10 seconds, 6 are expected to be saved, so 4 remain, a speed-up of 2.5. If the measured error is 0.58 to 2.4,
    then 4 / 0.58 = 6.9 to 4 / 2.4 = 1.7 seconds remain, and 3.1 to 8.3 are saved.
    """
    if not saving.expected:
        return saving
    remaining = seconds - saving.expected
    least, most = SPEED_UP_ERROR
    low = max(0.0, seconds - remaining / least)
    return Saving(saving.expected, min(saving.low, low), max(saving.high, seconds - remaining / most))


def _saved_share(nodes: Sequence[JudgedNode], seconds: Mapping[int, float], total: float, end: str) -> float:
    """Return the share of a query's task time that the engine saves on these nodes.

    end: the field of ``Factor`` to use, "expected", "low" or "high".
    """
    saved = 0.0
    for node in nodes:
        factor: Factor = FACTORS[node.kind]
        saved += seconds.get(id(node.node), 0.0) * (1 - 1 / float(getattr(factor, end)))
    return saved / total


def _fixed_seconds(
    run: QueryRun, nodes: Sequence[JudgedNode], costs: CostModel, config: EngineConfig
) -> float:
    """Return the seconds for planning, for starting Python stages, and for rows that move from Spark to the engine.

    A small query that the engine runs completely runs in the driver, without stages.
    """
    seconds = costs.planning_seconds
    whole = all(node.runs is RunsOn.ENGINE for node in nodes)
    if not whole or run.total("bytes_read") >= config.thread_bytes:
        seconds += len(run.stages) * costs.stage_seconds
    for node in nodes:
        for child in node.children:
            if node.runs is RunsOn.ENGINE and child.runs is RunsOn.SPARK:
                values = output_rows(child.node, run) * max(1, len(node.node.column_ids))
                seconds += values * costs.handed_value_seconds / max(1.0, _running_tasks(run))
    return seconds


def _running_tasks(run: QueryRun) -> float:
    """Return the average number of the query's tasks that ran at the same time."""
    return run.total("run_seconds") / run.stage_seconds if run.stage_seconds else 1.0

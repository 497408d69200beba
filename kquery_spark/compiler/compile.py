"""``compile_query``: the one way from a logical plan to stages."""

from __future__ import annotations

from dataclasses import dataclass, field

from kquery_spark.compiler.placement import IN_TASK_ORDER, Placement
from kquery_spark.config.engine import EngineConfig
from kquery_spark.logical import LogicalPlan, Projection, Sort
from kquery_spark.logical.scan import check_scans
from kquery_spark.optimizer import Step, optimize_steps
from kquery_spark.optimizer.constant_errors import check_constants
from kquery_spark.optimizer.statistics import Estimate, Estimator
from kquery_spark.physical.operators import PhysicalPlan
from kquery_spark.planner import plan_query
from kquery_spark.stages import StageGraph, build_stages


@dataclass(frozen=True)
class CompiledQuery:
    """A query after each step: the logical plan, what each rule made of it, the physical plan, the stages.

    estimate: how many rows the query gives and how many bytes its scans decode. config: the settings of the tasks that run
    the stages, which follow from the placement.
    """

    logical: LogicalPlan
    steps: tuple[Step, ...]
    estimate: Estimate
    physical: PhysicalPlan
    graph: StageGraph
    config: EngineConfig
    placement: Placement
    _settings: EngineConfig
    _others: dict[Placement, CompiledQuery] = field(default_factory=dict, compare=False, repr=False)

    @property
    def optimized(self) -> LogicalPlan:
        """The logical plan after all rules."""
        return _after_rules(self.logical, self.steps)

    @property
    def is_ordered(self) -> bool:
        """Whether the rows are in the order of a sort that is the last that the query does."""
        return is_ordered(self.optimized)

    @property
    def shares_sort(self) -> bool:
        """Whether an ordered result comes from several tasks, each one's rows before the next one's."""
        return self.is_ordered and len(self.graph.result.tasks) > 1

    def placed(self, placement: Placement) -> CompiledQuery:
        """The same optimized plan for tasks that run elsewhere; compiled once for each placement."""
        if placement == self.placement:
            return self
        query = self._others.get(placement)
        if query is None:
            query = self._others[placement] = _lower(
                self.logical, self.steps, self.estimate, self._settings, placement
            )
        return query


def compile_query(
    plan: LogicalPlan, config: EngineConfig, placement: Placement = IN_TASK_ORDER, check: bool = True
) -> CompiledQuery:
    """Optimize a resolved logical plan, lower it to operators, and cut these into stages.

    check: raise now what running the plan is sure to raise: SourceError and its like for its files, the ExecutionError of
    a constant. False where the reader of the plan has done so. Raises Unsupported for what no operator can do.
    """
    steps = tuple(optimize_steps(plan, config.disabled_rules))
    optimized = _after_rules(plan, steps)
    if check:
        check_scans(optimized)
        check_constants(optimized)
    return _lower(plan, steps, Estimator().estimate(optimized), config, placement)


def is_ordered(plan: LogicalPlan) -> bool:
    """Whether a plan's rows are in the order of a sort that is the last that it does."""
    return isinstance(plan, Sort) or (isinstance(plan, Projection) and is_ordered(plan.child))


def _after_rules(plan: LogicalPlan, steps: tuple[Step, ...]) -> LogicalPlan:
    return steps[-1].plan if steps else plan


def _lower(
    plan: LogicalPlan,
    steps: tuple[Step, ...],
    estimate: Estimate,
    settings: EngineConfig,
    placement: Placement,
) -> CompiledQuery:
    """Physical plan and stages of an optimized plan."""
    config = placement.settings(settings)
    physical = plan_query(_after_rules(plan, steps), config, shared_sort=placement.keeps_task_order)
    graph = build_stages(physical, config, in_order=placement.threads is not None)
    return CompiledQuery(plan, steps, estimate, physical, graph, config, placement, settings)

"""``compile_query`` turns a logical plan into a stage graph."""

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
    """The results of all steps of a compilation: the logical plan, the plan after each rule, the physical plan, the stages.

    estimate: the expected rows of the query, and the bytes that its scans decode. config: the settings of the tasks that run
    the stages, which depend on the placement.
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
        """The optimized logical plan."""
        return _after_rules(self.logical, self.steps)

    @property
    def is_ordered(self) -> bool:
        """True if the result is sorted, because the last operation is a sort."""
        return is_ordered(self.optimized)

    @property
    def shares_sort(self) -> bool:
        """True if a sorted result comes from several tasks, so that it has to be concatenated in task order."""
        return self.is_ordered and len(self.graph.result.tasks) > 1

    def placed(self, placement: Placement) -> CompiledQuery:
        """Return the query compiled for another placement. Each placement is compiled only once."""
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
    """Optimize a logical plan, lower it to operators, and cut these into stages.

    check: raise the errors that any run of the plan would raise: a SourceError for its files, or the ExecutionError of a
    constant. Pass False if the frontend has already checked this. Raises Unsupported for a node without an operator.
    """
    steps = tuple(optimize_steps(plan, config.disabled_rules))
    optimized = _after_rules(plan, steps)
    if check:
        check_scans(optimized)
        check_constants(optimized)
    return _lower(plan, steps, Estimator().estimate(optimized), config, placement)


def is_ordered(plan: LogicalPlan) -> bool:
    """True if the plan's rows are sorted, because its last operation (apart from projections) is a sort."""
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
    """Lower an optimized plan and cut it into stages. The settings are those of the user; the placement may change them."""
    config = placement.settings(settings)
    physical = plan_query(_after_rules(plan, steps), config, shared_sort=placement.keeps_task_order)
    graph = build_stages(physical, config, in_order=placement.threads is not None)
    return CompiledQuery(plan, steps, estimate, physical, graph, config, placement, settings)

"""Runs the rules in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kquery_spark.errors import ConfigError, PlanError
from kquery_spark.logical import LogicalPlan
from kquery_spark.logical.plan import format_schema
from kquery_spark.optimizer.rules.associative_operators import associative_operators
from kquery_spark.optimizer.rules.common_subexpressions import common_subexpressions
from kquery_spark.optimizer.rules.constant_folding import constant_folding
from kquery_spark.optimizer.rules.inner_to_semi import inner_to_semi
from kquery_spark.optimizer.rules.join_conditions import join_conditions
from kquery_spark.optimizer.rules.join_order import join_order
from kquery_spark.optimizer.rules.late_semi_joins import late_semi_joins
from kquery_spark.optimizer.rules.limit_pushdown import limit_pushdown
from kquery_spark.optimizer.rules.merge_projections import merge_projections
from kquery_spark.optimizer.rules.merged_aggregates import merged_aggregates
from kquery_spark.optimizer.rules.outer_to_inner import outer_to_inner
from kquery_spark.optimizer.rules.predicate_pushdown import predicate_pushdown
from kquery_spark.optimizer.rules.predicate_simplification import predicate_simplification
from kquery_spark.optimizer.rules.projection_pushdown import projection_pushdown
from kquery_spark.optimizer.rules.remove_sorts import remove_sorts
from kquery_spark.optimizer.rules.shared_aggregates import shared_aggregates
from kquery_spark.optimizer.rules.subquery_to_join import subquery_to_join
from kquery_spark.optimizer.rules.top_k_bounds import top_k_bounds
from kquery_spark.optimizer.rules.unwrap_casts import unwrap_casts
from kquery_spark.optimizer.rules.variant_field_pruning import variant_field_pruning

Rule = Callable[[LogicalPlan], LogicalPlan]

RULES: tuple[Rule, ...] = (
    subquery_to_join,
    constant_folding,
    associative_operators,
    predicate_simplification,
    unwrap_casts,
    merge_projections,
    remove_sorts,
    outer_to_inner,
    merged_aggregates,
    predicate_pushdown,
    join_conditions,
    join_order,
    late_semi_joins,
    limit_pushdown,
    projection_pushdown,
    variant_field_pruning,
    top_k_bounds,
    inner_to_semi,
    common_subexpressions,
    shared_aggregates,
)


@dataclass(frozen=True)
class Step:
    """The plan after one rule."""

    rule: str
    plan: LogicalPlan
    changed: bool


def optimize_steps(plan: LogicalPlan, disabled: Sequence[str] = ()) -> list[Step]:
    """Every rule's result, in order; ConfigError for a disabled rule that does not exist.

    PlanError, which names the rule, where one changed the names or the types of the plan's columns.
    """
    names = [rule.__name__ for rule in RULES]
    for name in disabled:
        if name not in names:
            raise ConfigError(f"there is no optimizer rule {name}; the rules are {', '.join(names)}")
    steps = []
    for rule in RULES:
        if rule.__name__ in disabled:
            continue
        after = rule(plan)
        _check_columns(rule, plan, after)
        steps.append(Step(rule.__name__, after, after != plan))
        plan = after
    return steps


def _check_columns(rule: Rule, before: LogicalPlan, after: LogicalPlan) -> None:
    if after is before:
        return
    expected, actual = before.schema, after.schema
    if actual.names != expected.names or actual.types != expected.types:
        raise PlanError(
            f"the optimizer rule {rule.__name__} changed the columns of the plan from ({format_schema(expected)}) to "
            f"({format_schema(actual)}), which is a bug; spark.kquery.disabledRules={rule.__name__} does without it"
        )


def optimize(plan: LogicalPlan, disabled: Sequence[str] = ()) -> LogicalPlan:
    """The plan after all rules."""
    steps = optimize_steps(plan, disabled)
    return steps[-1].plan if steps else plan

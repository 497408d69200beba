"""Runs the optimizer rules, each once, in a fixed order.

There is no loop until a fixed point: each rule visits the whole plan, and the order is chosen so that no rule needs the
result of a later one. The comments in ``RULES`` give the reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kquery_spark.errors import ConfigError, PlanError
from kquery_spark.logical import LogicalPlan
from kquery_spark.logical.plan import format_schema
from kquery_spark.optimizer.rules.associative_operators import associative_operators
from kquery_spark.optimizer.rules.common_subexpressions import common_subexpressions
from kquery_spark.optimizer.rules.constant_folding import constant_folding
from kquery_spark.optimizer.rules.implied_conditions import implied_conditions
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
    # This rule is first, because no other rule enters the plans inside of expressions. Later rules optimize its joins.
    subquery_to_join,
    # These rules simplify expressions. Folding produces literals, and the others depend on them: associative_operators
    # gathers literals, conditions are simplified by them, and casts are removed from a column that is compared with one.
    constant_folding,
    associative_operators,
    predicate_simplification,
    unwrap_casts,
    # Fewer nodes are then between filters and scans. This must run before common_subexpressions, which it would undo.
    merge_projections,
    remove_sorts,
    # This rule needs the filters above the joins, so it runs before pushdown. Inner joins let more filters pass.
    # It also turns left joins with one-row aggregates (scalar subqueries) into cross joins for merged_aggregates.
    outer_to_inner,
    # This rule returns cross joins below a filter. predicate_pushdown, join_conditions, and join_order turn them into joins
    # with keys again.
    merged_aggregates,
    # After pushdown, a filter above an inner join has only terms that read both sides: these become its keys, and the keys
    # and the filters in the scans are what the estimates of the join order need.
    predicate_pushdown,
    # This rule needs each condition at the join where pushdown leaves it, and it changes the estimates of the join order. If
    # pushdown leaves a derived filter above a join within an input, the next rule adds it to the condition of this join.
    implied_conditions,
    join_conditions,
    join_order,
    # This rule moves semi joins above inner joins that return few rows, so the order of the inner joins has to be final.
    late_semi_joins,
    limit_pushdown,
    # From here on no rule moves expressions between nodes, so the columns that each node reads are final. The next two rules
    # need the final columns and filters of the scans.
    projection_pushdown,
    variant_field_pruning,
    top_k_bounds,
    # This rule needs to know which columns are read above a join, and join_order must not miss the inner joins it changes.
    inner_to_semi,
    # This rule adds projections that merge_projections or predicate_pushdown would remove again.
    common_subexpressions,
    # This rule is last: the planner computes an aggregate once if the plan has the same object twice, and another rule could
    # replace one of the two by a copy.
    shared_aggregates,
)


@dataclass(frozen=True)
class Step:
    """The plan after one rule, and whether the rule changed it."""

    rule: str
    plan: LogicalPlan
    changed: bool


def optimize_steps(plan: LogicalPlan, disabled: Sequence[str] = ()) -> list[Step]:
    """Apply the rules and return the result of each, in order.

    Raises ConfigError if a disabled rule does not exist, and a PlanError that names the rule if one changes the names or the
    types of the plan's output columns.
    """
    names = [rule.__name__ for rule in RULES]
    for name in disabled:
        if name not in names:
            raise ConfigError(f"unknown optimizer rule {name}; the rules are {', '.join(names)}")
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
            f"({format_schema(actual)}), which is a bug; spark.kquery.disabledRules={rule.__name__} disables the rule"
        )


def optimize(plan: LogicalPlan, disabled: Sequence[str] = ()) -> LogicalPlan:
    """Return the plan after all rules."""
    steps = optimize_steps(plan, disabled)
    return steps[-1].plan if steps else plan

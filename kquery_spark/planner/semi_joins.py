"""Semi-join reduction: drops rows that a join would drop anyway before they are shuffled or grouped.

Both forms add a semi join with a small, replicated build side. At run time, its keys become a dynamic filter that prunes the
scan below the reduced side. (Spark: ``InjectRuntimeFilter``.)

1. ``reduce_sides``: one side of a shuffled join is reduced by a small part of the other side. In

       lines JOIN (orders JOIN (customers WHERE nation = 'PERU') ON o.customer = c.id) ON l.order_id = o.id

   ``orders`` is shuffled. The filtered customers are small, and they contain all values that ``o.customer`` has in the
   result, so ``orders SEMI JOIN customers`` leaves a 25th of the orders to shuffle.

2. ``reduce_groups``: a join with a replicated side drops groups without a match, so they need not be computed:

       (SELECT k, sum(x) FROM t GROUP BY k) JOIN few ON k = few.k
       ->  (SELECT k, sum(x) FROM t SEMI JOIN few ON k = few.k GROUP BY k) JOIN few ON k = few.k
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from kquery_spark.expr import Column, Expr, Named
from kquery_spark.expr.properties import is_deterministic, is_pure
from kquery_spark.logical import Aggregate, Filter, Join, JoinKind, LogicalPlan, Projection, Scan
from kquery_spark.logical.join import JoinKey
from kquery_spark.logical.plan import with_new_children
from kquery_spark.optimizer.repeatable_plans import is_repeatable
from kquery_spark.optimizer.statistics import Estimator
from kquery_spark.physical.dynamic_filters.runtime_filter import drops_unmatched

# A reduction that keeps a larger share of the key's values is not worth its lookups.
_MAX_REDUCED_SHARE = 1 / 3
# The reduced side must have at least this many bytes for each byte that the reducing side decodes.
_MIN_REDUCED_BYTES_PER_DECODED_BYTE = 1.0
# The nodes of a plan that may be computed a second time, on the build side of the semi join.
_REPEATABLE = (Scan, Filter, Projection, Join)

#: A predicate on plans, such as whether every task can compute the plan by itself.
PlanPredicate = Callable[[LogicalPlan], bool]
#: A key of the plan to reduce, and the expression over the other side of the join that it is compared with.
KeyPair = tuple[Expr, Expr]


def reduce_sides(plan: Join, estimator: Estimator, is_replicable: PlanPredicate) -> Join:
    """Reduce each side of the join by keys of the other side if that is cheap and drops most rows.

    Only a side whose rows are dropped without a match can be reduced. If a key can raise, it has to see all rows of its
    side, so no side is reduced. is_replicable: whether every task can compute a plan itself.
    """
    if not all(is_pure(side) for key in plan.keys for side in (key.left, key.right)):
        return plan
    left, right = plan.left, plan.right
    if drops_unmatched(plan.kind, build_is_left=False):
        left = _reduce_side(plan.left, plan.right, null_rejecting_keys(plan), estimator, is_replicable)
    if drops_unmatched(plan.kind, build_is_left=True):
        pairs = [(right, left) for left, right in null_rejecting_keys(plan)]
        right = _reduce_side(plan.right, plan.left, pairs, estimator, is_replicable)
    return plan if left is plan.left and right is plan.right else replace(plan, left=left, right=right)


def reduce_groups(
    plan: LogicalPlan,
    keys: Sequence[KeyPair],
    built: LogicalPlan,
    estimator: Estimator,
    is_shuffled: Callable[[Aggregate], bool],
) -> LogicalPlan:
    """Reduce the input of an aggregate in ``plan`` by the keys of ``built``, with which ``plan`` is joined.

    The join must drop rows of ``plan`` without a match. keys: pairs of an expression over ``plan`` and one over ``built``.
    is_shuffled: whether the states of an aggregate are shuffled; if not, there is little to save.
    """
    match plan:
        # An expression that can raise must see all groups.
        case Projection() | Filter() if not all(map(is_pure, plan.expressions)):
            return plan
        case Projection() | Filter():
            below = _keys_of_input(plan, keys)
            return with_new_children(plan, [reduce_groups(plan.child, below, built, estimator, is_shuffled)])
        # Groups without a match are no longer computed, so calls that can raise would not raise for them.
        case Aggregate() if is_shuffled(plan) and not any(call.raises for call in plan.calls):
            below = _keys_of_input(plan, keys)
            # The new semi join is below the aggregate; the join above stays, because it also outputs columns of the built
            # side.
            if _has_few_values(built, below, estimator):
                return plan.with_children([_semi_join(plan.child, built, below)])
    return plan


def _keys_of_input(plan: LogicalPlan, keys: Sequence[KeyPair]) -> list[KeyPair]:
    """Return the keys as expressions over the node's input.

    Keys that are not traced to the input are left out, and so are nondeterministic ones, because the semi join evaluates
    the key once more.
    """
    pairs = [(plan.trace_to_input(key), other) for key, other in keys if isinstance(key, Column)]
    return [(below[1], other) for below, other in pairs if below is not None and is_deterministic(below[1])]


def _has_few_values(built: LogicalPlan, keys: Sequence[KeyPair], estimator: Estimator) -> bool:
    """True if the built side has few of the keys' values, and may be computed a second time."""
    if not keys or not is_repeatable(built, _REPEATABLE):
        return False
    return estimator.share(built, [other for _, other in keys]) <= _MAX_REDUCED_SHARE


def null_rejecting_keys(plan: Join) -> list[KeyPair]:
    """Return the (left, right) expressions of the keys that are not null-safe."""
    return [(k.left, k.right) for k in plan.keys if not k.null_safe]


def _reduce_side(
    side: LogicalPlan,
    other: LogicalPlan,
    keys: Sequence[KeyPair],
    estimator: Estimator,
    is_replicable: PlanPredicate,
) -> LogicalPlan:
    """Reduce ``side`` by the part of ``other`` that has the smallest share of a key's values, if it is small enough."""
    # Every part of the other side with all values of a key can reduce this side. The one that leaves the fewest values
    # wins, among those that are cheap to compute in every task.
    candidates = [
        (estimator.share(part, [part_key]), part, (side_key, part_key))
        for side_key, other_key in keys
        for part, part_key in _parts_with_all_values(other, other_key)
        if _is_cheap_relative_to(part, side, estimator, is_replicable)
    ]
    if not candidates:
        return side
    share, part, pair = min(candidates, key=lambda candidate: candidate[0])
    return _semi_join(side, part, [pair]) if share <= _MAX_REDUCED_SHARE else side


def _is_cheap_relative_to(
    part: LogicalPlan, side: LogicalPlan, estimator: Estimator, is_replicable: PlanPredicate
) -> bool:
    """True if computing ``part`` once more in every task is cheap in comparison with ``side``."""
    if not is_repeatable(part, _REPEATABLE) or not is_replicable(part):
        return False
    return (
        estimator.estimate(side).nbytes
        >= _MIN_REDUCED_BYTES_PER_DECODED_BYTE * estimator.estimate(part).scanned
    )


def _parts_with_all_values(plan: LogicalPlan, key: Expr) -> Iterator[tuple[LogicalPlan, Expr]]:
    """Yield the subplans that contain all values that ``key`` has in the plan's output, each with the key there.

    The plan itself is the most selective one, but a subplan is cheaper to compute.
    """
    if not isinstance(key, Column):
        return
    yield plan, key
    match plan:
        case Projection() | Filter() | Aggregate():
            # Filters and aggregates only remove values, so their input has all values of the output.
            below = plan.trace_to_input(key)
            if below is not None:
                yield from _parts_with_all_values(*below)
        case Join():
            for side, side_key in _sides_with_all_values(plan, key):
                yield from _parts_with_all_values(side, side_key)


def _sides_with_all_values(plan: Join, key: Column) -> Iterator[tuple[LogicalPlan, Expr]]:
    """Yield the inputs of a join that contain all values of an output column, each with the key's expression there.

    These are the input that the column comes from, and, for the key of an inner join, also the other input.
    """
    on_left = key.name in plan.left.schema.names
    if on_left and not plan.kind.pads_left:
        yield plan.left, key
    if not on_left and plan.kind in (JoinKind.INNER, JoinKind.RIGHT):
        yield plan.right, key
    if plan.kind is JoinKind.INNER:
        # An inner join keeps only values that both sides of a key have, so either side has all of them.
        for pair in plan.keys:
            if key == pair.left:
                yield plan.right, pair.right
            elif key == pair.right:
                yield plan.left, pair.left


def _semi_join(side: LogicalPlan, part: LogicalPlan, keys: Sequence[KeyPair]) -> Join:
    """Return a semi join that keeps the rows of ``side`` whose keys are in ``part``. Only the keys of ``part`` are read."""
    names = list(dict.fromkeys(k.name for _, k in keys if isinstance(k, Column)))
    if isinstance(part, Scan):
        part = _project_scan(part, names)
    # The columns of both sides of a join need different names.
    aliases = _aliases(names, set(side.schema.names), part)
    if aliases is not None:
        part = Projection(part, tuple(Named(part.column(n), aliases[n]) for n in names))
        keys = [(own, part.column(aliases[k.name])) for own, k in keys if isinstance(k, Column)]
    return Join(side, part, JoinKind.SEMI, tuple(JoinKey(own, other) for own, other in keys))


def _project_scan(scan: Scan, names: Sequence[str]) -> Scan:
    """Return the scan with only these columns."""
    return replace(scan, projection=tuple(n for n in scan.schema.names if n in names))


def _aliases(names: Sequence[str], used_names: set[str], part: LogicalPlan) -> dict[str, str] | None:
    """Return new names for the columns of ``part``; None if none of its names is used, so that no renaming is necessary."""
    if not used_names & set(part.schema.names):
        return None
    aliases = {n: f"{n} (kept)" for n in names}
    while used_names & set(aliases.values()):
        aliases = {n: f"{alias}'" for n, alias in aliases.items()}
    return aliases

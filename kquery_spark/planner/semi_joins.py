"""Semi-join reduction: rows that a join will drop anyway are dropped before they are shuffled or grouped.

A side of a shuffled join is cut down by the keys of a small, filtered part of the other side; what a replicated join keeps
of groups is decided before grouping. Both add a semi join with a replicated build side, whose keys then filter the scan.
(Spark: ``InjectRuntimeFilter``.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from kquery_spark.expr import Column, Expr, Named
from kquery_spark.expr.properties import is_deterministic
from kquery_spark.logical import Aggregate, Filter, Join, JoinKind, LogicalPlan, Projection, Scan, walk_plan
from kquery_spark.logical.join import JoinKey
from kquery_spark.logical.plan import with_new_children
from kquery_spark.optimizer.statistics import Estimator
from kquery_spark.physical.dynamic_filters.runtime_filter import drops_unmatched

_MAX_REDUCED_SHARE = 1 / 3  # a reduction that keeps more of the keys' values is not worth its lookups
_MIN_REDUCED_BYTES_PER_DECODED_BYTE = (
    1.0  # bytes of a reduced side for each one that the reducing side decodes
)

Test = Callable[[LogicalPlan], bool]
#: An expression over the plan that is cut down, and the one over the other side of the join that it equals.
KeyPair = tuple[Expr, Expr]


def reduced_sides(plan: Join, estimator: Estimator, replicable: Test) -> Join:
    """The join with each side cut down by keys of the other, where that is cheap and drops most rows."""
    left, right = plan.left, plan.right
    if drops_unmatched(plan.kind, build_is_left=False):
        left = _reduced(plan.left, plan.right, value_keys(plan), estimator, replicable)
    if drops_unmatched(plan.kind, build_is_left=True):
        pairs = [(right, left) for left, right in value_keys(plan)]
        right = _reduced(plan.right, plan.left, pairs, estimator, replicable)
    return plan if left is plan.left and right is plan.right else replace(plan, left=left, right=right)


def reduced_groups(
    plan: LogicalPlan,
    keys: Sequence[KeyPair],
    built: LogicalPlan,
    estimator: Estimator,
    is_shuffled: Callable[[Aggregate], bool],
) -> LogicalPlan:
    """``plan``, of which a join drops the rows without a match, with groups that have none left out before grouping.

    keys: pairs of an expression over ``plan`` and one over ``built``. is_shuffled: whether an aggregate's rows are.
    """
    match plan:
        case Projection() | Filter():
            below = _over_input(plan, keys)
            return with_new_children(plan, [reduced_groups(plan.child, below, built, estimator, is_shuffled)])
        case Aggregate() if is_shuffled(plan) and not any(call.raises for call in plan.calls):
            below = _over_input(plan, keys)
            if _leaves_few(built, below, estimator):
                return plan.with_children([_semi(plan.child, built, below)])
    return plan


def _over_input(plan: LogicalPlan, keys: Sequence[KeyPair]) -> list[KeyPair]:
    """The keys over a node's input, those that are columns and copied from there."""
    pairs = [(plan.trace_to_input(key), other) for key, other in keys if isinstance(key, Column)]
    return [(below[1], other) for below, other in pairs if below is not None]


def _leaves_few(built: LogicalPlan, keys: Sequence[KeyPair], estimator: Estimator) -> bool:
    """Whether few values of the keys are in the built side, which may be computed a second time."""
    if not keys or not _is_repeatable(built):
        return False
    return estimator.share(built, [other for _, other in keys]) <= _MAX_REDUCED_SHARE


def value_keys(plan: Join) -> list[KeyPair]:
    """Left and right of the keys by which NULL matches nothing."""
    return [(k.left, k.right) for k in plan.keys if not k.null_safe]


def _reduced(
    side: LogicalPlan,
    other: LogicalPlan,
    keys: Sequence[KeyPair],
    estimator: Estimator,
    replicable: Test,
) -> LogicalPlan:
    """``side`` cut down by the part of ``other`` that keeps the fewest of a key's values."""
    candidates = [
        (estimator.share(part, [part_key]), part, (side_key, part_key))
        for side_key, other_key in keys
        for part, part_key in _parts_with(other, other_key)
        if _is_cheap_beside(part, side, estimator, replicable)
    ]
    if not candidates:
        return side
    share, part, pair = min(candidates, key=lambda candidate: candidate[0])
    return _semi(side, part, [pair]) if share <= _MAX_REDUCED_SHARE else side


def _is_cheap_beside(part: LogicalPlan, side: LogicalPlan, estimator: Estimator, replicable: Test) -> bool:
    """Whether every task may compute ``part`` once more to save rows of ``side``."""
    if not _is_repeatable(part) or not replicable(part):
        return False
    return (
        estimator.estimate(side).nbytes
        >= _MIN_REDUCED_BYTES_PER_DECODED_BYTE * estimator.estimate(part).scanned
    )


def _parts_with(plan: LogicalPlan, key: Expr) -> Iterator[tuple[LogicalPlan, Expr]]:
    """Parts of a plan of which every value of ``key`` in the plan's output is one, each with what the key is there."""
    if not isinstance(key, Column):
        return
    yield plan, key
    match plan:
        case Projection() | Filter() | Aggregate():
            below = plan.trace_to_input(key)
            if below is not None:
                yield from _parts_with(*below)
        case Join():
            for side, side_key in _sides_with(plan, key):
                yield from _parts_with(side, side_key)


def _sides_with(plan: Join, key: Column) -> Iterator[tuple[LogicalPlan, Expr]]:
    """Inputs of a join of which every value of an output column is one: its own, and by keys of an inner join the other."""
    on_left = key.name in plan.left.schema.names
    if on_left and not plan.kind.pads_left:
        yield plan.left, key
    if not on_left and plan.kind in (JoinKind.INNER, JoinKind.RIGHT):
        yield plan.right, key
    if plan.kind is JoinKind.INNER:
        for pair in plan.keys:
            if key == pair.left:
                yield plan.right, pair.right
            elif key == pair.right:
                yield plan.left, pair.left


def _is_repeatable(plan: LogicalPlan) -> bool:
    """Whether the plan's rows are the same wherever and however often it runs, as those of a LIMIT need not be."""
    return all(
        isinstance(node, Scan | Filter | Projection | Join) and all(map(is_deterministic, node.expressions))
        for node in walk_plan(plan)
    )


def _semi(side: LogicalPlan, part: LogicalPlan, keys: Sequence[KeyPair]) -> Join:
    """The rows of ``side`` whose keys are in ``part``, of which only the keys are read."""
    names = list(dict.fromkeys(k.name for _, k in keys if isinstance(k, Column)))
    if isinstance(part, Scan):
        part = _reading_only(part, names)
    aliases = _aliases(names, set(side.schema.names), part)
    if aliases is not None:
        part = Projection(part, tuple(Named(part.column(n), aliases[n]) for n in names))
        keys = [(own, part.column(aliases[k.name])) for own, k in keys if isinstance(k, Column)]
    return Join(side, part, JoinKind.SEMI, tuple(JoinKey(own, other) for own, other in keys))


def _reading_only(scan: Scan, names: Sequence[str]) -> Scan:
    """The scan without its columns that have other names."""
    return replace(scan, projection=tuple(n for n in scan.schema.names if n in names))


def _aliases(names: Sequence[str], used_names: set[str], part: LogicalPlan) -> dict[str, str] | None:
    """Other names for the columns of ``part``; None if none of its names is used."""
    if not used_names & set(part.schema.names):
        return None
    aliases = {n: f"{n} (kept)" for n in names}
    while used_names & set(aliases.values()):
        aliases = {n: f"{alias}'" for n, alias in aliases.items()}
    return aliases

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
from kquery_spark.optimizer.statistics import Estimator
from kquery_spark.physical.dynamic_filters.runtime_filter import drops_unmatched

_WORTH_SHARE = 1 / 3  # a reduction that keeps more of the keys' values is not worth its lookups
_WORTH_BYTES = 1.0  # bytes of a reduced side for each one that the reducing side decodes

Test = Callable[[LogicalPlan], bool]


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
    keys: Sequence[tuple[Expr, Expr]],
    built: LogicalPlan,
    estimator: Estimator,
    moves: Callable[[Aggregate], bool],
) -> LogicalPlan:
    """``plan``, of which a join drops the rows without a match, with groups that have none left out before grouping.

    keys: pairs of an expression over ``plan`` and one over ``built``. moves: whether an aggregate's rows are shuffled.
    """
    match plan:
        case Projection():
            sources = {e.name: e.expr for e in plan.exprs}
            below = [(sources[k.name], b) for k, b in keys if isinstance(k, Column)]
            return _over(plan, plan.child, reduced_groups(plan.child, below, built, estimator, moves))
        case Filter():
            return _over(plan, plan.child, reduced_groups(plan.child, keys, built, estimator, moves))
        case Aggregate() if moves(plan) and _settled(built) and not any(c.raises for c in plan.calls):
            groups = {k.name: k.expr for k in plan.keys}
            below = [(groups[k.name], b) for k, b in keys if isinstance(k, Column) and k.name in groups]
            if below and estimator.share(built, [b for _, b in below]) <= _WORTH_SHARE:
                return plan.with_children([_semi(plan.child, built, below)])
    return plan


def value_keys(plan: Join) -> list[tuple[Expr, Expr]]:
    """Left and right of the keys by which NULL matches nothing."""
    return [(k.left, k.right) for k in plan.keys if not k.null_safe]


def _reduced(
    side: LogicalPlan,
    other: LogicalPlan,
    keys: Sequence[tuple[Expr, Expr]],
    estimator: Estimator,
    replicable: Test,
) -> LogicalPlan:
    """``side`` cut down by the part of ``other`` that keeps the fewest of a key's values."""
    size = estimator.estimate(side).nbytes
    best: tuple[float, LogicalPlan] | None = None
    for here, there in keys:
        for part, key in _sources(other, there):
            if (
                not _settled(part)
                or not replicable(part)
                or size < _WORTH_BYTES * estimator.estimate(part).scanned
            ):
                continue
            share = estimator.share(part, [key])
            if share <= _WORTH_SHARE and (best is None or share < best[0]):
                best = share, _semi(side, part, [(here, key)])
    return side if best is None else best[1]


def _sources(plan: LogicalPlan, key: Expr) -> Iterator[tuple[LogicalPlan, Expr]]:
    """Parts of a plan of which every value of ``key`` in the plan's output is one, each with what the key is there."""
    if not isinstance(key, Column):
        return
    yield plan, key
    match plan:
        case Projection():
            inner = next(e.expr for e in plan.exprs if e.name == key.name)
            yield from _sources(plan.child, inner)
        case Filter():
            yield from _sources(plan.child, key)
        case Aggregate():
            group = next((k.expr for k in plan.keys if k.name == key.name), None)
            if group is not None:
                yield from _sources(plan.child, group)
        case Join():
            on_left = key.name in plan.left.schema.names
            if on_left and plan.kind not in (JoinKind.RIGHT, JoinKind.FULL):
                yield from _sources(plan.left, key)
            if not on_left and plan.kind in (JoinKind.INNER, JoinKind.RIGHT):
                yield from _sources(plan.right, key)
            if plan.kind is JoinKind.INNER:
                for pair in plan.keys:
                    if key in (pair.left, pair.right):
                        away = (plan.right, pair.right) if key == pair.left else (plan.left, pair.left)
                        yield from _sources(*away)


def _settled(plan: LogicalPlan) -> bool:
    """Whether the plan's rows are the same wherever and however often it runs, as those of a LIMIT need not be."""
    return all(
        isinstance(node, Scan | Filter | Projection | Join) and all(map(is_deterministic, node.expressions))
        for node in walk_plan(plan)
    )


def _semi(side: LogicalPlan, part: LogicalPlan, keys: Sequence[tuple[Expr, Expr]]) -> Join:
    """The rows of ``side`` whose keys are in ``part``, of which only the keys are read."""
    names = list(dict.fromkeys(k.name for _, k in keys if isinstance(k, Column)))
    if isinstance(part, Scan):
        kept: LogicalPlan = replace(part, projection=tuple(n for n in part.schema.names if n in names))
    else:
        kept = part
    taken = set(side.schema.names)
    if taken & set(kept.schema.names):
        fresh = {n: f"{n} (kept)" for n in names}
        while taken & set(fresh.values()):
            fresh = {n: f"{f}'" for n, f in fresh.items()}
        kept = Projection(kept, tuple(Named(kept.column(n), fresh[n]) for n in names))
        keys = [(here, kept.column(fresh[k.name])) for here, k in keys if isinstance(k, Column)]
    return Join(side, kept, JoinKind.SEMI, tuple(JoinKey(here, there) for here, there in keys))


def _over(plan: LogicalPlan, child: LogicalPlan, now: LogicalPlan) -> LogicalPlan:
    return plan if now is child else plan.with_children([now])

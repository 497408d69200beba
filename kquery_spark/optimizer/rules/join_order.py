"""Inner joins in the order that keeps intermediate results small."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from kquery_spark.expr import Expr, columns_of
from kquery_spark.expr.properties import can_raise, conjunction, conjuncts, is_deterministic
from kquery_spark.logical import Filter, Join, JoinKind, LogicalPlan, Projection
from kquery_spark.logical.join import JoinKey
from kquery_spark.logical.plan import over
from kquery_spark.logical.projection import same_columns
from kquery_spark.optimizer.statistics import Estimator

_MOST_INPUTS = 24


def join_order(plan: LogicalPlan) -> LogicalPlan:
    """``(lineitem JOIN orders) JOIN customer`` becomes ``lineitem JOIN (orders JOIN customer)`` when that is smaller.

    Greedy: of all pairs of inputs that share a key, the pair with the smallest expected result is joined first. Trees may
    be bushy. Inputs that are connected by no key, or a condition that can raise, leave the order as it was.
    """
    return _Reorder().rewrite(plan)


@dataclass(frozen=True)
class _Edge:
    left: Expr
    right: Expr
    null_safe: bool

    @cached_property
    def columns(self) -> tuple[frozenset[str], frozenset[str]]:
        """The columns that each side reads."""
        return frozenset(columns_of(self.left)), frozenset(columns_of(self.right))


class _Reorder:
    def __init__(self) -> None:
        self._estimator = Estimator()

    def rewrite(self, plan: LogicalPlan) -> LogicalPlan:
        if not (isinstance(plan, Join) and plan.kind is JoinKind.INNER):
            return over(plan, [self.rewrite(c) for c in plan.children])
        inputs: list[LogicalPlan] = []
        edges: list[_Edge] = []
        terms: list[Expr] = []
        self._flatten(plan, inputs, edges, terms)
        if 2 < len(inputs) <= _MOST_INPUTS and not any(
            can_raise(t) or not is_deterministic(t) for t in terms
        ):
            ordered = self._greedy([self.rewrite(i) for i in inputs], edges, terms)
            if ordered is not None:
                return same_columns(ordered, plan)
        return plan.with_children([self.rewrite(c) for c in plan.children])

    def _flatten(
        self,
        plan: LogicalPlan,
        inputs: list[LogicalPlan],
        edges: list[_Edge],
        terms: list[Expr],
    ) -> None:
        """Collect the inputs, keys and conditions of a tree of inner joins."""
        if isinstance(plan, Projection):
            below = _join_below(plan)
            if below is not None:
                self._flatten(below, inputs, edges, terms)
                return
        if isinstance(plan, Join) and plan.kind is JoinKind.INNER:
            self._flatten(plan.left, inputs, edges, terms)
            self._flatten(plan.right, inputs, edges, terms)
            edges += [_Edge(k.left, k.right, k.null_safe) for k in plan.keys]
            terms += conjuncts(plan.condition)
            return
        inputs.append(plan)

    def _greedy(self, inputs: list[LogicalPlan], edges: list[_Edge], terms: list[Expr]) -> LogicalPlan | None:
        groups = list(inputs)
        if len({n for g in groups for n in g.schema.names}) < sum(len(g.schema.names) for g in groups):
            return None  # a projection in between had dropped a column that another input has too
        # the joined pair leaves and its result enters: only pairs with that are new in a round
        sizes: dict[tuple[int, int], float | None] = {}
        while len(groups) > 1:
            best: tuple[float, int, int] | None = None
            for i in range(len(groups)):
                for j in range(i + 1, len(groups)):
                    pair = id(groups[i]), id(groups[j])
                    if pair not in sizes:
                        sizes[pair] = self._size(groups[i], groups[j], edges)
                    rows = sizes[pair]
                    if rows is not None and (best is None or rows < best[0]):
                        best = (rows, i, j)
            if best is None:
                return None
            _, i, j = best
            joined = self._joined(groups[i], groups[j], edges, terms)
            groups = [g for k, g in enumerate(groups) if k not in (i, j)] + [joined]
        rest = [t for t in terms if not _applied(groups[0], t)]
        return groups[0] if not rest else Filter(groups[0], conjunction(rest) or rest[0])

    def _size(self, left: LogicalPlan, right: LogicalPlan, edges: list[_Edge]) -> float | None:
        """Expected rows of a join; None for inputs that no key connects."""
        keys = _between(left, right, edges)
        if not keys:
            return None
        rows = self._estimator.estimate(left).rows, self._estimator.estimate(right).rows
        return self._estimator.matches(*rows, [(left, k.left, right, k.right) for k in keys])

    def _joined(
        self, left: LogicalPlan, right: LogicalPlan, edges: list[_Edge], terms: list[Expr]
    ) -> LogicalPlan:
        keys = tuple(_between(left, right, edges))
        names = set(left.schema.names) | set(right.schema.names)
        known = [set(left.schema.names), set(right.schema.names)]
        now = [t for t in terms if columns_of(t) <= names and not any(columns_of(t) <= k for k in known)]
        return Join(left, right, JoinKind.INNER, keys, conjunction(now))


def _applied(plan: LogicalPlan, term: Expr) -> bool:
    """Whether a join below has taken the condition up."""
    if isinstance(plan, Join) and plan.kind is JoinKind.INNER:
        return term in conjuncts(plan.condition) or any(_applied(c, term) for c in plan.children)
    return False


def _between(left: LogicalPlan, right: LogicalPlan, edges: list[_Edge]) -> list[JoinKey]:
    """The keys that connect two plans, pointed the right way."""
    left_names, right_names = set(left.schema.names), set(right.schema.names)
    keys = []
    for edge in edges:
        a, b = edge.columns
        if a <= left_names and b <= right_names:
            keys.append(JoinKey(edge.left, edge.right, edge.null_safe))
        elif b <= left_names and a <= right_names:
            keys.append(JoinKey(edge.right, edge.left, edge.null_safe))
    return keys


def _join_below(plan: Projection) -> LogicalPlan | None:
    """The inner join under a projection that only drops columns; dropping them can wait until after reordering."""
    child = plan.child
    if plan.only_drops and isinstance(child, Join) and child.kind is JoinKind.INNER:
        return child
    return None

"""Inner joins in the order that keeps intermediate results small."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, count

from kquery_spark.expr import Expr, columns_of
from kquery_spark.expr.properties import conjunction, conjuncts, is_pure
from kquery_spark.logical import Filter, Join, JoinKind, LogicalPlan, Projection
from kquery_spark.logical.join import JoinKey
from kquery_spark.logical.plan import with_new_children
from kquery_spark.logical.projection import same_columns
from kquery_spark.optimizer.statistics import Estimator

_MAX_INPUTS = 24


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
            return with_new_children(plan, [self.rewrite(c) for c in plan.children])
        tree = _JoinTree()
        tree.add(plan)
        if tree.may_be_reordered:
            ordered = self._greedy([self.rewrite(one) for one in tree.inputs], tree)
            if ordered is not None:
                return same_columns(ordered, plan)
        return plan.with_children([self.rewrite(c) for c in plan.children])

    def _greedy(self, inputs: list[LogicalPlan], tree: _JoinTree) -> LogicalPlan | None:
        """The inputs, joined pair by pair, the smallest result first; None where no key connects the rest."""
        if _share_a_name(inputs):
            return None  # a projection in between had dropped a column that another input has too
        numbers = count()
        groups = dict(zip(numbers, inputs, strict=False))
        # the joined pair leaves and its result enters: only pairs with that are new in a round
        sizes: dict[tuple[int, int], float | None] = {}
        while len(groups) > 1:
            for left, right in combinations(groups, 2):
                if (left, right) not in sizes:
                    sizes[left, right] = self._size(groups[left], groups[right], tree.edges)
            best = _smallest(groups, sizes)
            if best is None:
                return None
            left, right = best
            groups[next(numbers)] = _joined(groups.pop(left), groups.pop(right), tree)
        (joined,) = groups.values()
        condition = conjunction([term for term in tree.terms if not _applied(joined, term)])
        return joined if condition is None else Filter(joined, condition)

    def _size(self, left: LogicalPlan, right: LogicalPlan, edges: list[_Edge]) -> float | None:
        """Expected rows of a join; None for inputs that no key connects."""
        keys = _between(left, right, edges)
        if not keys:
            return None
        rows = self._estimator.estimate(left).rows, self._estimator.estimate(right).rows
        return self._estimator.matches(*rows, [(left, k.left, right, k.right) for k in keys])


def _share_a_name(inputs: Sequence[LogicalPlan]) -> bool:
    """Whether two columns of the inputs have the same name."""
    return len({n for g in inputs for n in g.schema.names}) < sum(len(g.schema) for g in inputs)


def _smallest(groups: Iterable[int], sizes: Mapping[tuple[int, int], float | None]) -> tuple[int, int] | None:
    """The pair with the fewest rows, of those that a key connects."""
    rows = {pair: size for pair in combinations(groups, 2) if (size := sizes[pair]) is not None}
    return min(rows, key=rows.__getitem__) if rows else None


@dataclass(frozen=True)
class _JoinTree:
    """A tree of inner joins taken apart: what is joined, by which keys and conditions."""

    inputs: list[LogicalPlan] = field(default_factory=list)
    edges: list[_Edge] = field(default_factory=list)
    terms: list[Expr] = field(default_factory=list)

    def add(self, plan: LogicalPlan) -> None:
        """Take in the inputs, keys and conditions of a tree."""
        if isinstance(plan, Projection):
            plan = _join_below(plan) or plan
        if not (isinstance(plan, Join) and plan.kind is JoinKind.INNER):
            self.inputs.append(plan)
            return
        self.add(plan.left)
        self.add(plan.right)
        self.edges.extend(_Edge(k.left, k.right, k.null_safe) for k in plan.keys)
        self.terms.extend(conjuncts(plan.condition))

    @property
    def may_be_reordered(self) -> bool:
        """Whether there is an order to choose, and it does not matter which rows the conditions see."""
        return 2 < len(self.inputs) <= _MAX_INPUTS and all(map(is_pure, self.terms))


def _joined(left: LogicalPlan, right: LogicalPlan, tree: _JoinTree) -> LogicalPlan:
    """The join of two inputs by the keys between them, with the conditions that read both."""
    keys = tuple(_between(left, right, tree.edges))
    left_names, right_names = left.column_names, right.column_names
    terms = [term for term in tree.terms if _reads_both(columns_of(term), left_names, right_names)]
    return Join(left, right, JoinKind.INNER, keys, conjunction(terms))


def _reads_both(names: Set[str], left_names: Set[str], right_names: Set[str]) -> bool:
    """Whether all columns are there, and not all of them on one side."""
    return names <= left_names | right_names and not names <= left_names and not names <= right_names


def _applied(plan: LogicalPlan, term: Expr) -> bool:
    """Whether a join below has taken the condition up."""
    if isinstance(plan, Join) and plan.kind is JoinKind.INNER:
        return term in conjuncts(plan.condition) or any(_applied(c, term) for c in plan.children)
    return False


def _between(left: LogicalPlan, right: LogicalPlan, edges: list[_Edge]) -> list[JoinKey]:
    """The keys that connect two plans, pointed the right way."""
    left_names, right_names = left.column_names, right.column_names
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

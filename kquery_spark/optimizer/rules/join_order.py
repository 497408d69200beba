"""Reorders inner joins so that intermediate results stay small."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import combinations, count

from kquery_spark.cached_property import cached_property
from kquery_spark.expr import Call, Expr, columns_of
from kquery_spark.expr.properties import conjunction, conjuncts, is_pure
from kquery_spark.logical import Join, JoinKind, LogicalPlan, Projection
from kquery_spark.logical.filter import with_filter
from kquery_spark.logical.join import JoinKey
from kquery_spark.logical.plan import with_new_children
from kquery_spark.logical.projection import with_columns_of
from kquery_spark.optimizer.semi_join_reducers import equal_columns, reduced_input
from kquery_spark.optimizer.statistics import Estimator

_MAX_INPUTS = 24  # trees with more inputs keep their order, because planning would take too long


def join_order(plan: LogicalPlan) -> LogicalPlan:
    """Turn ``(lineitem JOIN orders) JOIN customer`` into ``lineitem JOIN (orders JOIN customer)`` if that is smaller.

    A tree of inner joins is a graph: its inputs are the nodes, its keys are the edges. Greedy operator ordering picks, in
    each round, the pair of connected nodes whose join has the fewest expected rows, and replaces both by their join. For

        lineitem (6,000,000) -- orders (1,500,000) -- customer (filtered: 30,000 of 150,000)

    the first round compares lineitem JOIN orders (6,000,000 rows) with orders JOIN customer (300,000 rows) and takes the
    latter. The second round joins the result with lineitem. The trees can be bushy: both inputs of a join can be joins.

    A small join can also reduce an input that no key connects with it (see ``semi_join_reducers``). Example: c_nationkey
    and n_nationkey both equal s_nationkey, and a filter on region leaves 5 of 25 nations. Then customer becomes ``customer
    SEMI JOIN (nation JOIN region)`` before its joins are compared.

    The order does not change if an input is not connected to the others by keys, or if a key or a condition can raise an
    error or is nondeterministic: in another order it would be evaluated for other rows.
    """
    return _Reorder().rewrite(plan)


@dataclass(frozen=True)
class _Edge:
    """A join key without a direction: either side may become the left one."""

    left: Expr
    right: Expr
    null_safe: bool

    @cached_property
    def columns(self) -> tuple[frozenset[str], frozenset[str]]:
        """The columns that each side reads."""
        return frozenset(columns_of(self.left)), frozenset(columns_of(self.right))

    @cached_property
    def condition(self) -> Expr:
        """The edge as a term of a join condition."""
        return Call.of("eq_null_safe" if self.null_safe else "eq", self.left, self.right)

    def key_between(self, left_names: Set[str], right_names: Set[str]) -> JoinKey | None:
        """Return the key of a join of plans with these columns; None unless each plan has all columns of one side."""
        a, b = self.columns
        if a <= left_names and b <= right_names:
            return JoinKey(self.left, self.right, self.null_safe)
        if b <= left_names and a <= right_names:
            return JoinKey(self.right, self.left, self.null_safe)
        return None


class _Reorder:
    """One run of the rule over a plan, which caches the estimates."""

    def __init__(self) -> None:
        self._estimator = Estimator()

    def rewrite(self, plan: LogicalPlan) -> LogicalPlan:
        if not (isinstance(plan, Join) and plan.kind is JoinKind.INNER):
            return with_new_children(plan, [self.rewrite(c) for c in plan.children])
        tree = _JoinTree()
        tree.add(plan)
        if tree.can_be_reordered:
            ordered = self._join_greedily([self.rewrite(node) for node in tree.inputs], tree)
            if ordered is not None:
                return with_columns_of(ordered, plan)
        return plan.with_children([self.rewrite(c) for c in plan.children])

    def _join_greedily(self, inputs: list[LogicalPlan], tree: _JoinTree) -> LogicalPlan | None:
        """Join the inputs pair by pair, the smallest result first; None if no key connects the remaining inputs."""
        # Projections between the joins can drop a column whose name another input has as well. Without these projections,
        # the name would be ambiguous.
        if _share_a_name(inputs):
            return None
        numbers = count()
        groups = dict(zip(numbers, inputs, strict=False))
        # A round removes two groups and adds their join under a new number, so all other pairs keep their estimate: with n
        # inputs, O(n * n) estimates are computed, not O(n * n * n).
        sizes: dict[tuple[int, int], float | None] = {}
        while len(groups) > 1:
            # Only pairs that a key connects have a size: joining others would be a cross join.
            for left, right in combinations(groups, 2):
                if (left, right) not in sizes:
                    sizes[left, right] = self._size(groups[left], groups[right], tree.edges)
            best = _smallest_pair(groups, sizes)
            if best is None:
                return None
            left, right = best
            pair = _join_pair(groups.pop(left), groups.pop(right), tree)
            # Only inputs that are not part of a join yet can be reduced, and each only once: joins and reduced inputs
            # have larger numbers than the inputs.
            for number in [n for n in groups if n < len(inputs)]:
                reduced = self._reduce(groups[number], pair, tree)
                # A reduced input gets a new number, because ``sizes`` has the joins of the input before it was reduced.
                if reduced is not None:
                    del groups[number]
                    groups[next(numbers)] = reduced
            groups[next(numbers)] = pair
        (joined,) = groups.values()
        # Terms that read a single input (or no column) did not become part of any join.
        return with_filter(joined, [term for term in tree.terms if not _is_applied(joined, term)])

    def _reduce(self, plan: LogicalPlan, joined: LogicalPlan, tree: _JoinTree) -> LogicalPlan | None:
        """Reduce an input by a semi join with a join that no key connects with it; None if this is not worth it."""
        if not tree.equal_columns or _keys_between(plan, joined, tree.edges):
            return None
        return reduced_input(plan, joined, tree.equal_columns, self._estimator)

    def _size(self, left: LogicalPlan, right: LogicalPlan, edges: list[_Edge]) -> float | None:
        """Return the expected rows of a join; None if no key connects its inputs."""
        keys = _keys_between(left, right, edges)
        if not keys:
            return None
        rows = self._estimator.estimate(left).rows, self._estimator.estimate(right).rows
        return self._estimator.matches(*rows, [(left, k.left, right, k.right) for k in keys])


def _share_a_name(inputs: Sequence[LogicalPlan]) -> bool:
    """True if two columns of the inputs have the same name."""
    return len({n for g in inputs for n in g.schema.names}) < sum(len(g.schema) for g in inputs)


def _smallest_pair(
    groups: Iterable[int], sizes: Mapping[tuple[int, int], float | None]
) -> tuple[int, int] | None:
    """Return the connected pair with the fewest expected rows; None if no pair is connected."""
    rows = {pair: size for pair in combinations(groups, 2) if (size := sizes[pair]) is not None}
    return min(rows, key=rows.__getitem__) if rows else None


@dataclass(frozen=True)
class _JoinTree:
    """A tree of inner joins taken apart into its inputs, keys (edges) and the terms of its conditions."""

    inputs: list[LogicalPlan] = field(default_factory=list)
    edges: list[_Edge] = field(default_factory=list)
    terms: list[Expr] = field(default_factory=list)

    def add(self, plan: LogicalPlan) -> None:
        """Add the inputs, keys and conditions of a (sub)tree, left to right."""
        if isinstance(plan, Projection):
            plan = _join_below(plan) or plan
        if not (isinstance(plan, Join) and plan.kind is JoinKind.INNER):
            self.inputs.append(plan)
            return
        self.add(plan.left)
        self.add(plan.right)
        self.edges.extend(_Edge(k.left, k.right, k.null_safe) for k in plan.keys)
        self.terms.extend(conjuncts(plan.condition))

    @cached_property
    def equal_columns(self) -> list[frozenset[str]]:
        """The classes of equal columns with more than two members. A class of two is a key, so it implies no other key."""
        classes = equal_columns(JoinKey(e.left, e.right, e.null_safe) for e in self.edges)
        return [names for names in classes if len(names) > 2]

    @property
    def can_be_reordered(self) -> bool:
        """True if there is more than one order, and the keys and conditions may be evaluated for any rows."""
        keys = [side for edge in self.edges for side in (edge.left, edge.right)]
        return 2 < len(self.inputs) <= _MAX_INPUTS and all(map(is_pure, (*keys, *self.terms)))


def _join_pair(left: LogicalPlan, right: LogicalPlan, tree: _JoinTree) -> LogicalPlan:
    """Join two inputs by the keys between them, with the terms that read columns of both.

    A side of an edge can read several inputs: a JOIN b JOIN c ON least(a.x, b.y) = c.z. If a is joined with c first, the
    edge is not a key of any join, because a.x and b.y are in different plans. Then it is a term of the join with b.
    """
    left_names, right_names = left.column_names, right.column_names
    keys: list[JoinKey] = []
    terms = list(tree.terms)
    for edge in tree.edges:
        key = edge.key_between(left_names, right_names)
        if key is None:
            terms.append(edge.condition)
        else:
            keys.append(key)
    condition = conjunction([x for x in terms if _reads_both(columns_of(x), left_names, right_names)])
    return Join(left, right, JoinKind.INNER, tuple(keys), condition)


def _reads_both(names: Set[str], left_names: Set[str], right_names: Set[str]) -> bool:
    """True if the two sides together have all columns, and neither side alone has them all."""
    return names <= left_names | right_names and not names <= left_names and not names <= right_names


def _is_applied(plan: LogicalPlan, term: Expr) -> bool:
    """True if a join of the tree has the term in its condition."""
    if isinstance(plan, Join) and plan.kind is JoinKind.INNER:
        return term in conjuncts(plan.condition) or any(_is_applied(c, term) for c in plan.children)
    return False


def _keys_between(left: LogicalPlan, right: LogicalPlan, edges: list[_Edge]) -> list[JoinKey]:
    """Return the keys that connect two plans, with each expression on the side that has its columns."""
    keys = (edge.key_between(left.column_names, right.column_names) for edge in edges)
    return [key for key in keys if key is not None]


def _join_below(plan: Projection) -> LogicalPlan | None:
    """Return the inner join below a projection that only drops columns. The columns can be dropped after reordering."""
    child = plan.child
    if plan.only_drops and isinstance(child, Join) and child.kind is JoinKind.INNER:
        return child
    return None

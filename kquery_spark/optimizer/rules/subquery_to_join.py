"""Subqueries become joins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kquery_spark.errors import KQueryError, Unsupported
from kquery_spark.expr import (
    Call,
    Case,
    Expr,
    Literal,
    Named,
    columns_of,
    rename_columns,
    transform,
    walk,
)
from kquery_spark.expr.constants import evaluate_constant
from kquery_spark.expr.properties import conjunction, conjuncts, is_constant
from kquery_spark.logical import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    LateralJoin,
    Limit,
    LogicalPlan,
    Projection,
    Sort,
    walk_plan,
)
from kquery_spark.logical.conditions import split_condition
from kquery_spark.logical.join import JoinKey
from kquery_spark.logical.one_row import always_one_row
from kquery_spark.logical.plan import fresh_name, with_new_children
from kquery_spark.logical.projection import same_columns
from kquery_spark.logical.single_row import SingleRow
from kquery_spark.logical.subqueries import Exists, InSubquery, ScalarSubquery, Subquery
from kquery_spark.optimizer.decorrelation import bind_outer, disjoint, is_correlated, pull_up
from kquery_spark.optimizer.empty_input import value_over_no_rows
from kquery_spark.optimizer.lateral_joins import plain_join
from kquery_spark.optimizer.normal_conditions import with_normal_conditions
from kquery_spark.types import names as t


def subquery_to_join(plan: LogicalPlan) -> LogicalPlan:
    """``Filter: exists(Filter: #b = outer(#a) / Scan: t)`` becomes ``Join: semi, on=[#a = #b]``.

    EXISTS and IN become semi joins, NOT EXISTS anti joins, NOT IN null-aware anti joins; inside other expressions they are
    the column of an existence join. A scalar subquery becomes a left join; a correlated one is grouped by what it is
    compared on, and rows it has no group for get what its aggregates give for no rows (0 for a count). So is that of a
    lateral join.
    """
    if not any(_has_subquery(expr) for node in walk_plan(plan) for expr in node.expressions):
        return plan
    return _rewrite(plan)


def _has_subquery(expr: Expr) -> bool:
    return any(isinstance(e, Subquery) for e in walk(expr))


def _rewrite(plan: LogicalPlan) -> LogicalPlan:
    plan = with_new_children(plan, [_rewrite(c) for c in plan.children])
    if not any(map(_has_subquery, plan.expressions)):
        return plan
    if isinstance(plan, LateralJoin):
        return plain_join(plan, _rewritten(plan.query))
    plan = plan.map_expressions(lambda e: transform(e, _plain_truth))
    if isinstance(plan, Filter):
        return _filter(plan)
    if len(plan.children) != 1:
        raise Unsupported(f"A subquery in the condition of a {type(plan).__name__} is not supported.")
    joined = _Joined(plan.children[0])
    replaced = {e: joined.values(e) for e in plan.expressions}
    # The child has every column of before, so it can take its place before the expressions change.
    widened = plan.with_children([joined.plan])
    return same_columns(widened.map_expressions(lambda e: replaced[e]), plan)


def _plain_truth(expr: Expr) -> Expr:
    """``x = false`` is NOT x, and NOT NOT x is x: Spark sees what an IN is below before it makes a join of it."""
    match expr:
        case Call(function="eq" | "neq", args=(left, right)):
            for value, literal in ((left, right), (right, left)):
                if literal.dtype == t.BOOL and (truth := _truth(literal)) is not None:
                    same = truth == (expr.function == "eq")
                    return value if same else _plain_truth(Call.of("not", value))
        case Call(function="not", args=(Call(function="not", args=(inner,)),)):
            return inner
    return expr


def _truth(expr: Expr) -> object:
    """The value of a constant; None for a constant that raises, and for all else."""
    try:
        return evaluate_constant(expr).value if is_constant(expr) else None
    except KQueryError:
        return None


def _filter(plan: Filter) -> LogicalPlan:
    """Conditions without subqueries first; then joins that keep rows; then what is computed of columns of joins."""
    terms = conjuncts(plan.condition)
    plain = conjunction([x for x in terms if not _has_subquery(x)])
    joined = _Joined(plan.child if plain is None else Filter(plan.child, plain))
    computed: list[Expr] = []
    for term in filter(_has_subquery, terms):
        negated = isinstance(term, Call) and term.function == "not"
        inner = term.children[0] if negated else term
        if isinstance(inner, Exists | InSubquery) and not any(map(_has_subquery, inner.children)):
            joined.restrict(inner, negated)
        else:
            computed.append(joined.values(term))
    condition = conjunction(computed)
    return same_columns(joined.plan if condition is None else Filter(joined.plan, condition), plan)


@dataclass
class _Joined:
    """A plan that subqueries are joined to, one after the other."""

    plan: LogicalPlan
    columns: dict[tuple[Expr, bool], Expr] = field(default_factory=dict)

    def values(self, expr: Expr, negated: bool = False) -> Expr:
        """The expression with columns of the join for its subqueries; ``negated``: inside some NOT.

        Spark's rule for IN that is no condition by itself: a NULL counts as no match, below a NOT of its own as a match.
        """
        if isinstance(expr, Subquery):
            return self._replaced(expr, negated, unknown=False)
        if not expr.children:
            return expr
        is_not = isinstance(expr, Call) and expr.function == "not"
        inner = expr.children[0]
        if is_not and isinstance(inner, InSubquery):
            return expr.with_children([self._replaced(inner, False, unknown=True)])
        return expr.with_children([self.values(c, negated or is_not) for c in expr.children])

    def _replaced(self, expr: Subquery, negated: bool, unknown: bool) -> Expr:
        children = [self.values(c) for c in expr.children]
        same = expr.with_children(children) if children else expr
        assert isinstance(same, Subquery)
        if (same, unknown) not in self.columns:
            self.columns[same, unknown] = self._value(same, negated, unknown)
        return self.columns[same, unknown]

    def _value(self, expr: Subquery, negated: bool, unknown: bool) -> Expr:
        if isinstance(expr, ScalarSubquery):
            return self._scalar(expr)
        open_ended = isinstance(expr, InSubquery) and expr.nullable
        if open_ended and negated:
            raise Unsupported("IN (SELECT ...) that can be NULL inside a larger NOT is not supported.")
        if open_ended and unknown:
            assert isinstance(expr, InSubquery)
            inner, condition = self._not_false(expr)
        else:
            inner, condition = self._pulled(expr)
        name = fresh_name("exists", [*self.plan.schema.names, *inner.schema.names])
        keys, residual = split_condition(condition, self.plan.schema.names, inner.schema.names)
        self.plan = Join(
            self.plan, inner, JoinKind.EXISTENCE, tuple(keys), conjunction(residual), exists=name
        )
        return self.plan.column(name)

    def restrict(self, expr: Exists | InSubquery, negated: bool) -> None:
        """Keep the rows for which the subquery is true (``negated``: false)."""
        if negated and isinstance(expr, InSubquery) and expr.nullable:
            self._not_in(expr)
            return
        inner, condition = self._pulled(expr)
        keys, residual = split_condition(condition, self.plan.schema.names, inner.schema.names)
        kind = JoinKind.ANTI if negated else JoinKind.SEMI
        self.plan = Join(self.plan, inner, kind, tuple(keys), conjunction(residual))

    def _not_in(self, expr: InSubquery) -> None:
        """A row stays when every comparison is FALSE: neither TRUE nor unknown."""
        if len(expr.values) == 1 and not expr.outer and columns_of(expr.values[0]):
            inner = disjoint(_rewritten(expr), self.plan)[0]
            key = JoinKey(expr.values[0], inner.column(inner.schema.names[0]))
            self.plan = Join(self.plan, inner, JoinKind.ANTI, (key,), null_aware=True)
            return
        inner, condition = self._not_false(expr)
        keys, residual = split_condition(condition, self.plan.schema.names, inner.schema.names)
        self.plan = Join(self.plan, inner, JoinKind.ANTI, tuple(keys), conjunction(residual))

    def _not_false(self, expr: InSubquery) -> tuple[LogicalPlan, Expr | None]:
        """The subquery's plan and the condition that a comparison is TRUE or unknown."""
        inner, correlated = self._pulled(Exists(expr.plan, expr.outer), keep=expr.plan.schema.names)
        columns = [inner.column(n) for n in inner.schema.names[: len(expr.values)]]
        terms = conjuncts(correlated)
        same: Expr | None = None
        for value, column in zip(expr.values, columns, strict=True):
            one = Call.of("eq", value, column)
            same = one if same is None else Call.of("and", same, one)
        assert same is not None
        terms.append(Call.of("or", same, Call.of("isnull", same)))
        return inner, conjunction(terms)

    def _pulled(self, expr: Subquery, keep: Sequence[str] = ()) -> tuple[LogicalPlan, Expr | None]:
        """The subquery's plan without outer references, and the condition that joins it."""
        plan = _rewritten(expr)
        if isinstance(expr, Exists) and not keep:
            plan = _for_existence(plan)
        names = plan.schema.names
        pulled, terms = pull_up(plan, existence=True)
        compared = names if isinstance(expr, InSubquery) else []
        pulled = _only(pulled, keep, columns_of(*terms) | set(compared))
        renamed, aliases = disjoint(pulled, self.plan)
        outer = {n.name: n.expr for n in expr.outer}
        condition = [bind_outer(rename_columns(x, aliases), outer) for x in terms]
        if isinstance(expr, InSubquery):
            columns = [renamed.column(aliases.get(n, n)) for n in compared]
            condition += [Call.of("eq", v, c) for v, c in zip(expr.values, columns, strict=True)]
        return renamed, conjunction(condition)

    def _scalar(self, expr: ScalarSubquery) -> Expr:
        plan = _rewritten(expr)
        if is_correlated(plan):
            return self._correlated_scalar(expr, plan)
        name = plan.schema.names[0]
        kind = JoinKind.INNER if always_one_row(plan) else JoinKind.LEFT
        inner, aliases = disjoint(plan if _at_most_one_row(plan) else SingleRow(plan), self.plan)
        self.plan = Join(self.plan, inner, kind)
        return self.plan.column(aliases.get(name, name))

    def _correlated_scalar(self, expr: ScalarSubquery, plan: LogicalPlan) -> Expr:
        """The value of the group that a row is compared with, or of no rows where there is no such group."""
        if not _at_most_one_row(plan):
            raise Unsupported("A correlated subquery used as a value must be an aggregate without GROUP BY.")
        name = plan.schema.names[0]
        empty = value_over_no_rows(plan)
        outer = {n.name: n.expr for n in expr.outer}
        pulled, terms = pull_up(plan, existence=False, around=(self.plan, outer))
        used_names = [*self.plan.schema.names, *pulled.schema.names]
        group_exists = Named(Literal(True, t.BOOL), fresh_name("found", used_names))
        if empty.value is not None:
            columns = tuple(Named(pulled.column(n), n) for n in pulled.schema.names)
            pulled = Projection(pulled, (*columns, group_exists))
        inner, aliases = disjoint(pulled, self.plan)
        condition = conjunction([bind_outer(rename_columns(x, aliases), outer) for x in terms])
        keys, residual = split_condition(condition, self.plan.schema.names, inner.schema.names)
        if len(keys) < len(terms):
            raise Unsupported(
                f"A correlated subquery used as a value, compared by {residual}, is not supported."
            )
        self.plan = Join(self.plan, inner, JoinKind.LEFT, tuple(keys))
        value = self.plan.column(aliases.get(name, name))
        if empty.value is None:
            return value
        return Case(((Call.of("isnotnull", self.plan.column(group_exists.name)), value),), empty)


def _rewritten(expr: Subquery) -> LogicalPlan:
    """The subquery's plan without subqueries, its conditions in the form that decorrelation knows."""
    return _rewrite(with_normal_conditions(expr.plan))


def _only(plan: LogicalPlan, first: Sequence[str], needed: set[str]) -> LogicalPlan:
    """The plan's columns that are needed, those in ``first`` in front; all if none is."""
    names = [*first, *(n for n in plan.schema.names if n in needed and n not in first)]
    if not names or names == plan.schema.names:
        return plan
    return Projection(plan, tuple(Named(plan.column(n), n) for n in names))


def _at_most_one_row(plan: LogicalPlan) -> bool:
    """Whether the plan gives no row or one, whatever the data."""
    match plan:
        case Aggregate():
            return not plan.keys
        case Projection() | Sort() | Filter():
            return _at_most_one_row(plan.child)
        case Limit(count=1) if not is_correlated(plan):
            return True
        case Join(kind=JoinKind.LEFT | JoinKind.INNER) if plan.matches_all_pairs:
            return all(map(_at_most_one_row, plan.children))
    return False


def _for_existence(plan: LogicalPlan) -> LogicalPlan:
    """Drop what cannot change whether there are rows: sorting, projecting, removing duplicates."""
    while True:
        match plan:
            case Projection() | Sort():
                plan = plan.child
            case Aggregate(aggregates=()) if plan.keys:
                plan = plan.child
            case Limit(offset=0) if plan.count is None or plan.count > 0:
                if not is_correlated(plan.child):
                    return Limit(plan.child, 1)
                plan = plan.child
            case _:
                return plan

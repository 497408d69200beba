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
    Limit,
    LogicalPlan,
    Projection,
    Sort,
    walk_plan,
)
from kquery_spark.logical.conditions import split_condition
from kquery_spark.logical.join import JoinKey
from kquery_spark.logical.one_row import always_one_row
from kquery_spark.logical.plan import fresh_name, over
from kquery_spark.logical.single_row import SingleRow
from kquery_spark.logical.subqueries import Exists, InSubquery, ScalarSubquery, Subquery
from kquery_spark.optimizer.decorrelation import bind_outer, is_correlated, pull_up
from kquery_spark.optimizer.empty_input import value_over_no_rows
from kquery_spark.optimizer.rules.predicate_simplification import predicate_simplification
from kquery_spark.types import names as t


def subquery_to_join(plan: LogicalPlan) -> LogicalPlan:
    """``Filter: exists(Filter: #b = outer(#a) / Scan: t)`` becomes ``Join: semi, on=[#a = #b]``.

    EXISTS and IN become semi joins, NOT EXISTS anti joins, NOT IN null-aware anti joins; inside other expressions they are
    the column of an existence join. A scalar subquery becomes a left join; a correlated one is grouped by what it is
    compared on, and rows it has no group for get what its aggregates give for no rows (0 for a count).
    """
    if not any(
        isinstance(e, Subquery) for node in walk_plan(plan) for x in node.expressions for e in walk(x)
    ):
        return plan
    return _rewrite(plan)


def _rewrite(plan: LogicalPlan) -> LogicalPlan:
    plan = over(plan, [_rewrite(c) for c in plan.children])
    if not any(isinstance(e, Subquery) for x in plan.expressions for e in walk(x)):
        return plan
    plan = plan.map_expressions(lambda e: transform(e, _plain_truth))
    if isinstance(plan, Filter):
        return _filter(plan)
    if len(plan.children) != 1:
        raise Unsupported(f"A subquery in the condition of a {type(plan).__name__} is not supported.")
    joined = _Joined(plan.children[0])
    done = {e: joined.values(e) for e in plan.expressions}
    # The child has every column of before, so it can take its place before the expressions change.
    widened = plan.with_children([joined.plan])
    return _shaped(widened.map_expressions(lambda e: done[e]), plan)


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


def _shaped(plan: LogicalPlan, original: LogicalPlan) -> LogicalPlan:
    """Just the columns the node had before."""
    names = original.schema.names
    if plan.schema.names == names:
        return plan
    return Projection(plan, tuple(Named(plan.column(n), n) for n in names))


def _filter(plan: Filter) -> LogicalPlan:
    terms = conjuncts(plan.condition)
    plain = [x for x in terms if not any(isinstance(e, Subquery) for e in walk(x))]
    rest = [x for x in terms if x not in plain]
    condition = conjunction(plain)
    joined = _Joined(plan.child if condition is None else Filter(plan.child, condition))
    after: list[Expr] = []
    for term in rest:
        negated = isinstance(term, Call) and term.function == "not"
        inner = term.args[0] if negated and isinstance(term, Call) else term
        if isinstance(inner, Exists | InSubquery) and not any(
            isinstance(e, Subquery) for c in inner.children for e in walk(c)
        ):
            joined.restrict(inner, negated)
        else:
            after.append(joined.values(term))
    result = joined.plan
    above = conjunction(after)
    return _shaped(result if above is None else Filter(result, above), plan)


@dataclass
class _Joined:
    """A plan that subqueries are joined to, one after the other."""

    plan: LogicalPlan
    made: dict[tuple[Expr, bool], Expr] = field(default_factory=dict)

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
        if (same, unknown) not in self.made:
            self.made[same, unknown] = self._value(same, negated, unknown)
        return self.made[same, unknown]

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
        keys, rest = split_condition(condition, self.plan.schema.names, inner.schema.names)
        self.plan = Join(self.plan, inner, JoinKind.EXISTENCE, tuple(keys), conjunction(rest), exists=name)
        return self.plan.column(name)

    def restrict(self, expr: Exists | InSubquery, negated: bool) -> None:
        """Keep the rows for which the subquery is true (``negated``: false)."""
        if negated and isinstance(expr, InSubquery) and expr.nullable:
            self._not_in(expr)
            return
        inner, condition = self._pulled(expr)
        keys, rest = split_condition(condition, self.plan.schema.names, inner.schema.names)
        kind = JoinKind.ANTI if negated else JoinKind.SEMI
        self.plan = Join(self.plan, inner, kind, tuple(keys), conjunction(rest))

    def _not_in(self, expr: InSubquery) -> None:
        """A row stays when every comparison is FALSE: neither TRUE nor unknown."""
        if len(expr.values) == 1 and not expr.outer and columns_of(expr.values[0]):
            inner = _disjoint(_rewrite(predicate_simplification(expr.plan)), self.plan, [])[0]
            key = JoinKey(expr.values[0], inner.column(inner.schema.names[0]))
            self.plan = Join(self.plan, inner, JoinKind.ANTI, (key,), null_aware=True)
            return
        inner, condition = self._not_false(expr)
        keys, rest = split_condition(condition, self.plan.schema.names, inner.schema.names)
        self.plan = Join(self.plan, inner, JoinKind.ANTI, tuple(keys), conjunction(rest))

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
        plan = _rewrite(predicate_simplification(expr.plan))
        if isinstance(expr, Exists) and not keep:
            plan = _for_existence(plan)
        names = plan.schema.names
        pulled, terms = pull_up(plan, existence=True)
        compared = names if isinstance(expr, InSubquery) else []
        needed = columns_of(*terms) | set(keep) | set(compared)
        kept = [*keep, *(n for n in pulled.schema.names if n in needed and n not in keep)]
        if kept != pulled.schema.names and kept:
            pulled = Projection(pulled, tuple(Named(pulled.column(n), n) for n in kept))
        renamed, mapping = _disjoint(pulled, self.plan, [])
        outer = {n.name: n.expr for n in expr.outer}
        bound = [bind_outer(rename_columns(x, mapping), outer) for x in terms]
        if isinstance(expr, InSubquery):
            bound += [
                Call.of("eq", v, renamed.column(mapping.get(n, n)))
                for v, n in zip(expr.values, names, strict=True)
            ]
        return renamed, conjunction(bound)

    def _scalar(self, expr: ScalarSubquery) -> Expr:
        plan = _rewrite(predicate_simplification(expr.plan))
        name = plan.schema.names[0]
        if not is_correlated(plan):
            kind = JoinKind.INNER if always_one_row(plan) else JoinKind.LEFT
            inner, mapping = _disjoint(plan if _at_most_one_row(plan) else SingleRow(plan), self.plan, [])
            self.plan = Join(self.plan, inner, kind)
            return self.plan.column(mapping.get(name, name))
        if not _at_most_one_row(plan):
            raise Unsupported("A correlated subquery used as a value must be an aggregate without GROUP BY.")
        empty = value_over_no_rows(plan)
        outer = {n.name: n.expr for n in expr.outer}
        pulled, terms = pull_up(plan, existence=False, around=(self.plan, outer))
        found = Named(
            Literal(True, t.BOOL), fresh_name("found", [*self.plan.schema.names, *pulled.schema.names])
        )
        if empty.value is not None:
            columns = tuple(Named(pulled.column(n), n) for n in pulled.schema.names)
            pulled = Projection(pulled, (*columns, found))
        inner, mapping = _disjoint(pulled, self.plan, [])
        condition = conjunction([bind_outer(rename_columns(x, mapping), outer) for x in terms])
        keys, rest = split_condition(condition, self.plan.schema.names, inner.schema.names)
        if len(keys) < len(terms):
            raise Unsupported(f"A correlated subquery used as a value, compared by {rest}, is not supported.")
        self.plan = Join(self.plan, inner, JoinKind.LEFT, tuple(keys))
        value: Expr = self.plan.column(mapping.get(name, name))
        if empty.value is not None:
            hit = Call.of("isnotnull", self.plan.column(found.name))
            value = Case(((hit, value),), empty)
        return value


def _at_most_one_row(plan: LogicalPlan) -> bool:
    """Whether the plan gives no row or one, whatever the data."""
    match plan:
        case Aggregate():
            return not plan.keys
        case Projection() | Sort() | Filter():
            return _at_most_one_row(plan.child)
        case Limit(count=1) if not is_correlated(plan):
            return True
        case Join(kind=JoinKind.LEFT | JoinKind.INNER) if plan.compares_nothing:
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


def _disjoint(
    plan: LogicalPlan, other: LogicalPlan, reserved: Sequence[str]
) -> tuple[LogicalPlan, dict[str, str]]:
    """The plan with columns renamed that another plan has, too, and how."""
    taken = {*other.schema.names, *reserved}
    clash = [n for n in plan.schema.names if n in taken]
    if not clash:
        return plan, {}
    mapping = {n: fresh_name(n, [*taken, *plan.schema.names]) for n in clash}
    renamed = Projection(plan, tuple(Named(plan.column(n), mapping.get(n, n)) for n in plan.schema.names))
    return renamed, mapping

"""Replaces subqueries by joins.

    WHERE EXISTS (...), WHERE x IN (...)         semi join
    WHERE NOT EXISTS (...)                       anti join
    WHERE x NOT IN (...)                         anti join for which a comparison with NULL is a match (null-aware)
    SELECT x IN (...), other places              existence join, which adds a boolean column
    scalar subquery that is not correlated       cross join, or a left join if the subquery may return no row
    correlated scalar subquery                   left join with the aggregate, grouped by the columns that are compared
    lateral join                                 ordinary join

The hard part is NULL. ``x IN (SELECT y ...)`` is TRUE if a comparison is TRUE, otherwise NULL if one is NULL, otherwise
FALSE. A filter drops rows for FALSE and for NULL alike, so a semi join on ``x = y`` is right for IN. For NOT IN, a row
stays only if all comparisons are FALSE, so the anti join has to count a NULL comparison as a match.
"""

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
from kquery_spark.functions.sql_form import Logic
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
from kquery_spark.logical.filter import with_filter
from kquery_spark.logical.join import JoinKey
from kquery_spark.logical.one_row import always_one_row
from kquery_spark.logical.plan import fresh_name, with_new_children
from kquery_spark.logical.projection import with_columns_of
from kquery_spark.logical.single_row import SingleRow
from kquery_spark.logical.subqueries import Exists, InSubquery, ScalarSubquery, Subquery
from kquery_spark.optimizer.decorrelation import bind_outer, is_correlated, pull_up, with_disjoint_names
from kquery_spark.optimizer.empty_input import value_over_no_rows
from kquery_spark.optimizer.lateral_joins import lateral_to_join
from kquery_spark.optimizer.rules.predicate_simplification import predicate_simplification
from kquery_spark.types import names as t


def subquery_to_join(plan: LogicalPlan) -> LogicalPlan:
    """Turn ``Filter: exists(Filter: #b = outer(#a) / Scan: t)`` into ``Join: semi, on=[#a = #b]``.

    The table at the top of this module lists the other forms. Correlated conditions are pulled out of the subquery first
    (see ``decorrelation``). An outer row for which a correlated aggregate has no group gets the aggregate's value over no
    rows (see ``empty_input``).
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
        return lateral_to_join(plan, _rewrite_query(plan.query))
    plan = plan.map_expressions(lambda e: transform(e, _simplify_truth_test))
    if isinstance(plan, Filter):
        return _rewrite_filter(plan)
    if len(plan.children) != 1:
        raise Unsupported(f"a subquery in the condition of a {type(plan).__name__} is not supported")
    joined = _SubqueryJoins(plan.children[0])
    replaced = {e: joined.replace_subqueries(e) for e in plan.expressions}
    # The joins only add columns to the child, so the node is valid over them even before its expressions change.
    widened = plan.with_children([joined.plan])
    return with_columns_of(widened.map_expressions(lambda e: replaced[e]), plan)


def _simplify_truth_test(expr: Expr) -> Expr:
    """Turn ``x = false`` into ``NOT x`` and ``NOT NOT x`` into ``x``.

    Spark does this before it replaces subqueries, and whether an IN is below a NOT decides which join it becomes.
    """
    match expr:
        case Call(logic=Logic.EQUAL | Logic.NOT_EQUAL, args=(left, right)):
            for value, literal in ((left, right), (right, left)):
                if literal.dtype == t.BOOL and (truth := _constant_truth(literal)) is not None:
                    same = truth == (expr.logic is Logic.EQUAL)
                    return value if same else _simplify_truth_test(Call.of("not", value))
        case Call(logic=Logic.NOT, args=(Call(logic=Logic.NOT, args=(inner,)),)):
            return inner
    return expr


def _constant_truth(expr: Expr) -> object:
    """Return the value of a constant; None if it raises, or if the expression is not constant."""
    try:
        return evaluate_constant(expr).value if is_constant(expr) else None
    except KQueryError:
        return None


def _rewrite_filter(plan: Filter) -> LogicalPlan:
    """Rewrite a filter in three steps, so that later steps see fewer rows.

    1. Terms without subqueries filter the child.
    2. Terms that are EXISTS or IN, or the negation of one, become semi and anti joins.
    3. All other subqueries become columns, and a filter above the joins evaluates their terms.
    """
    terms = conjuncts(plan.condition)
    plain = [x for x in terms if not _has_subquery(x)]
    joined = _SubqueryJoins(with_filter(plan.child, plain))
    computed: list[Expr] = []
    for term in filter(_has_subquery, terms):
        negated = isinstance(term, Call) and term.logic is Logic.NOT
        inner = term.children[0] if negated else term
        # A subquery nested in the values of IN has to be joined first, so it becomes a column.
        if isinstance(inner, Exists | InSubquery) and not any(map(_has_subquery, inner.children)):
            joined.restrict(inner, negated)
        else:
            computed.append(joined.replace_subqueries(term))
    return with_columns_of(with_filter(joined.plan, computed), plan)


@dataclass
class _SubqueryJoins:
    """A plan to which subqueries are joined, one after the other.

    ``columns`` has the replacement of each subquery that is already joined; the boolean says whether NULL counts as a match.
    """

    plan: LogicalPlan
    columns: dict[tuple[Expr, bool], Expr] = field(default_factory=dict)

    def replace_subqueries(self, expr: Expr, negated: bool = False) -> Expr:
        """Join the subqueries of an expression and replace them by columns. ``negated``: whether ``expr`` is below a NOT.

        For an IN inside of a larger expression, Spark treats a NULL comparison as no match; directly below NOT, as a match.
        """
        if isinstance(expr, Subquery):
            return self._column_of(expr, negated, null_matches=False)
        if not expr.children:
            return expr
        is_not = isinstance(expr, Call) and expr.logic is Logic.NOT
        inner = expr.children[0]
        if is_not and isinstance(inner, InSubquery):
            return expr.with_children([self._column_of(inner, False, null_matches=True)])
        return expr.with_children([self.replace_subqueries(c, negated or is_not) for c in expr.children])

    def _column_of(self, expr: Subquery, negated: bool, null_matches: bool) -> Expr:
        """Return the expression over ``self.plan`` that replaces a subquery; join the subquery if that has not been done."""
        children = [self.replace_subqueries(c) for c in expr.children]
        subquery = expr.with_children(children) if children else expr
        assert isinstance(subquery, Subquery)
        if (subquery, null_matches) not in self.columns:
            self.columns[subquery, null_matches] = self._join(subquery, negated, null_matches)
        return self.columns[subquery, null_matches]

    def _join(self, expr: Subquery, negated: bool, null_matches: bool) -> Expr:
        if isinstance(expr, ScalarSubquery):
            return self._join_scalar(expr)
        # An existence join returns TRUE or FALSE, never NULL. For an IN that can be NULL, that is right if NULL counts as
        # FALSE (no match), or, directly below NOT, as TRUE (a match). Below a larger NOT, neither is right.
        can_be_null = isinstance(expr, InSubquery) and expr.nullable
        if can_be_null and negated:
            raise Unsupported("IN (SELECT ...) that can be NULL inside a larger NOT is not supported")
        if can_be_null and null_matches:
            assert isinstance(expr, InSubquery)
            inner, condition = self._true_or_null_comparison(expr)
        else:
            inner, condition = self._decorrelate(expr)
        name = fresh_name("exists", [*self.plan.schema.names, *inner.schema.names])
        keys, residual = split_condition(condition, self.plan.schema.names, inner.schema.names)
        self.plan = Join(
            self.plan, inner, JoinKind.EXISTENCE, tuple(keys), conjunction(residual), exists=name
        )
        return self.plan.column(name)

    def restrict(self, expr: Exists | InSubquery, negated: bool) -> None:
        """Keep only the rows for which the subquery is TRUE (``negated``: FALSE)."""
        if negated and isinstance(expr, InSubquery) and expr.nullable:
            self._restrict_not_in(expr)
            return
        inner, condition = self._decorrelate(expr)
        keys, residual = split_condition(condition, self.plan.schema.names, inner.schema.names)
        kind = JoinKind.ANTI if negated else JoinKind.SEMI
        self.plan = Join(self.plan, inner, kind, tuple(keys), conjunction(residual))

    def _restrict_not_in(self, expr: InSubquery) -> None:
        """Keep only the rows for which every comparison is FALSE, that is, neither TRUE nor NULL."""
        if len(expr.values) == 1 and not expr.outer and columns_of(expr.values[0]):
            # The usual form is a hash join: the null-aware anti join handles NULLs on either side as special cases.
            inner = with_disjoint_names(_rewrite_query(expr), self.plan)[0]
            key = JoinKey(expr.values[0], inner.column(inner.schema.names[0]))
            self.plan = Join(self.plan, inner, JoinKind.ANTI, (key,), null_aware=True)
            return
        inner, condition = self._true_or_null_comparison(expr)
        keys, residual = split_condition(condition, self.plan.schema.names, inner.schema.names)
        self.plan = Join(self.plan, inner, JoinKind.ANTI, tuple(keys), conjunction(residual))

    def _true_or_null_comparison(self, expr: InSubquery) -> tuple[LogicalPlan, Expr | None]:
        """Return the decorrelated plan, and a condition that is TRUE for comparisons that are TRUE or NULL."""
        inner, correlated = self._decorrelate(Exists(expr.plan, expr.outer), keep=expr.plan.schema.names)
        columns = [inner.column(n) for n in inner.schema.names[: len(expr.values)]]
        terms = conjuncts(correlated)
        comparison: Expr | None = None
        for value, column in zip(expr.values, columns, strict=True):
            equality = Call.of("eq", value, column)
            comparison = equality if comparison is None else Call.of("and", comparison, equality)
        assert comparison is not None
        terms.append(Call.of("or", comparison, Call.of("isnull", comparison)))
        return inner, conjunction(terms)

    def _decorrelate(self, expr: Subquery, keep: Sequence[str] = ()) -> tuple[LogicalPlan, Expr | None]:
        """Return the subquery's plan without OuterColumns, and the condition that joins it to ``self.plan``.

        keep: columns to output first, in this order. The other output columns are those that the condition reads.
        """
        plan = _rewrite_query(expr)
        if isinstance(expr, Exists) and not keep:
            plan = _drop_irrelevant_for_existence(plan)
        names = plan.schema.names
        pulled, terms = pull_up(plan, existence=True)
        compared = names if isinstance(expr, InSubquery) else []
        pulled = _select_columns(pulled, keep, columns_of(*terms) | set(compared))
        renamed, aliases = with_disjoint_names(pulled, self.plan)
        outer = {n.name: n.expr for n in expr.outer}
        condition = [bind_outer(rename_columns(x, aliases), outer) for x in terms]
        if isinstance(expr, InSubquery):
            columns = [renamed.column(aliases.get(n, n)) for n in compared]
            condition += [Call.of("eq", v, c) for v, c in zip(expr.values, columns, strict=True)]
        return renamed, conjunction(condition)

    def _join_scalar(self, expr: ScalarSubquery) -> Expr:
        plan = _rewrite_query(expr)
        if is_correlated(plan):
            return self._join_correlated_scalar(expr, plan)
        name = plan.schema.names[0]
        # Exactly one row: a cross join neither drops nor repeats rows. Possibly no row: a left join gives NULL.
        kind = JoinKind.INNER if always_one_row(plan) else JoinKind.LEFT
        inner, aliases = with_disjoint_names(plan if _at_most_one_row(plan) else SingleRow(plan), self.plan)
        self.plan = Join(self.plan, inner, kind)
        return self.plan.column(aliases.get(name, name))

    def _join_correlated_scalar(self, expr: ScalarSubquery, plan: LogicalPlan) -> Expr:
        """Join each row with its group of the aggregate; a row without a group gets the aggregate's value over no rows.

        ``(SELECT count(*) FROM b WHERE b.k = outer(k))`` becomes a left join with ``SELECT k, count(*) AS c, TRUE AS found
        FROM b GROUP BY k``, and the value is ``CASE WHEN found IS NOT NULL THEN c ELSE 0 END``.
        """
        if not _at_most_one_row(plan):
            raise Unsupported("a correlated subquery used as a value must be an aggregate without GROUP BY")
        name = plan.schema.names[0]
        empty = value_over_no_rows(plan)
        outer = {n.name: n.expr for n in expr.outer}
        pulled, terms = pull_up(plan, existence=False, outer_query=(self.plan, outer))
        used_names = [*self.plan.schema.names, *pulled.schema.names]
        group_exists = Named(Literal(True, t.BOOL), fresh_name("found", used_names))
        if empty.value is not None:
            columns = tuple(Named(pulled.column(n), n) for n in pulled.schema.names)
            pulled = Projection(pulled, (*columns, group_exists))
        inner, aliases = with_disjoint_names(pulled, self.plan)
        condition = conjunction([bind_outer(rename_columns(x, aliases), outer) for x in terms])
        keys, residual = split_condition(condition, self.plan.schema.names, inner.schema.names)
        # Only equalities pick one group per row. With other conditions a row could match several groups.
        if len(keys) < len(terms):
            raise Unsupported(
                f"a correlated subquery used as a value, compared by {residual}, is not supported"
            )
        self.plan = Join(self.plan, inner, JoinKind.LEFT, tuple(keys))
        value = self.plan.column(aliases.get(name, name))
        if empty.value is None:
            return value
        return Case(((Call.of("isnotnull", self.plan.column(group_exists.name)), value),), empty)


def _rewrite_query(expr: Subquery) -> LogicalPlan:
    """Replace the nested subqueries of a subquery's plan, and rewrite its conditions in normal form for decorrelation."""
    return _rewrite(predicate_simplification(expr.plan))


def _select_columns(plan: LogicalPlan, first: Sequence[str], needed: set[str]) -> LogicalPlan:
    """Select the columns in ``first``, then the other needed ones; if there are none at all, select all columns."""
    names = [*first, *(n for n in plan.schema.names if n in needed and n not in first)]
    if not names or names == plan.schema.names:
        return plan
    return Projection(plan, tuple(Named(plan.column(n), n) for n in names))


def _at_most_one_row(plan: LogicalPlan) -> bool:
    """True if the plan returns at most one row for any data."""
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


def _drop_irrelevant_for_existence(plan: LogicalPlan) -> LogicalPlan:
    """Drop nodes at the top that do not affect whether there are rows: projections, sorts, DISTINCT and positive limits."""
    while True:
        match plan:
            case Projection() | Sort():
                plan = plan.child
            case Aggregate(aggregates=()) if plan.keys:
                plan = plan.child
            case Limit(offset=0) if plan.count is None or plan.count > 0:
                # EXISTS needs a single row. A limit of a correlated plan applies to each outer row, and is not needed at
                # all.
                if not is_correlated(plan.child):
                    return Limit(plan.child, 1)
                plan = plan.child
            case _:
                return plan

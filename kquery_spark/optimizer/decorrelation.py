"""Decorrelation: pulls the correlated conditions out of a subquery, so that they can become the condition of a join.

A subquery is correlated if its plan reads the current row of the outer query (an ``OuterColumn``). Each node between such a
condition and the top of the subquery has to let the condition pass, which may change the node:

    SELECT * FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.id AND l.qty > 5)

    Projection: 1                                        Projection: 1, #order_id    -- carries what the condition reads
      Filter: #order_id = outer(#id) AND #qty > 5   ->     Filter: #qty > 5
        Scan: lines                                          Scan: lines             pulled up: #order_id = outer(#id)

``subquery_to_join`` then uses the pulled condition for a semi join of ``orders`` with this plan.

An aggregate has to compute one result for each outer row. If the conditions are equalities, grouping by their inner sides is
enough, and a join picks the group of each outer row:

    (SELECT sum(l.qty) FROM lines l WHERE l.order_id = o.id)   ->   SELECT order_id, sum(qty) FROM lines GROUP BY order_id

For other conditions (``l.price < o.price``) a line belongs to the groups of many outer rows. Then the distinct outer values
are joined with the inner rows first, and each distinct outer value is a group; see ``_aggregate_of_pairs``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from kquery_spark.errors import Unsupported
from kquery_spark.expr import (
    Call,
    Column,
    Expr,
    Named,
    columns_of,
    rename_columns,
    transform,
    walk,
)
from kquery_spark.expr.properties import conjunction, conjuncts
from kquery_spark.functions.sql_form import Logic
from kquery_spark.logical import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    LogicalPlan,
    Projection,
    Scan,
    Sort,
    Union,
    walk_plan,
)
from kquery_spark.logical.conditions import split_condition
from kquery_spark.logical.plan import fresh_name
from kquery_spark.logical.subqueries import OuterColumn
from kquery_spark.optimizer.repeatable_plans import is_repeatable

#: The outer plan that a subquery will be joined to, and the expression over it for each OuterColumn, by name.
OuterQuery = tuple[LogicalPlan, dict[str, Expr]]
#: A plan without correlated conditions, and the conditions pulled out of it, which read only its output and OuterColumns.
PulledUp = tuple[LogicalPlan, list[Expr]]

# The nodes of an outer plan that may be computed a second time, for its distinct values.
_REPEATABLE = (Scan, Filter, Projection, Join, Aggregate, Sort, Union)


def _reads_outer(expr: Expr) -> bool:
    return any(isinstance(e, OuterColumn) for e in walk(expr))


def is_correlated(plan: LogicalPlan) -> bool:
    """True if the plan reads the current row of the outer query."""
    return any(_reads_outer(e) for node in walk_plan(plan) for e in node.expressions)


def bind_outer(expr: Expr, outer: dict[str, Expr]) -> Expr:
    """Replace each OuterColumn in the expression by the expression that ``outer`` has for its name."""
    return transform(expr, lambda e: outer.get(e.name, e) if isinstance(e, OuterColumn) else e)


def pull_up(plan: LogicalPlan, existence: bool, outer_query: OuterQuery | None = None) -> PulledUp:
    """Return the plan without its correlated conditions, and these conditions.

    ``existence``: the caller only needs to know whether there are rows, not which or how many. ``outer_query``: needed for
    aggregates whose conditions are not equalities. Raises Unsupported, which names the node that conditions cannot pass.
    """
    return _Decorrelation(existence, outer_query).pull(plan)


@dataclass(frozen=True)
class _Decorrelation:
    """Pulls conditions up through one class of nodes per method. The methods are registered in ``_PULLS``."""

    existence: bool
    outer_query: OuterQuery | None

    def pull(self, plan: LogicalPlan) -> PulledUp:
        if not is_correlated(plan):
            return plan, []
        pull_node = _PULLS.get(type(plan))
        if pull_node is None:
            raise _cannot_pass(plan)
        return pull_node(self, plan)

    def filter(self, plan: Filter) -> PulledUp:
        """Take the correlated terms out of the filter, and pass on those from below."""
        child, terms = self.pull(plan.child)
        condition, correlated = _without_correlated(plan.condition)
        return (child if condition is None else Filter(child, condition)), [*terms, *correlated]

    def projection(self, plan: Projection) -> PulledUp:
        """Add the columns that the conditions read to the projection."""
        if any(map(_reads_outer, plan.expressions)):
            raise Unsupported("a subquery that selects a value of the query around it is not supported")
        child, terms = self.pull(plan.child)
        selected = {e.name for e in plan.exprs}
        # A column that the conditions read may already be in the output, perhaps under another name. Otherwise it is
        # added under a name that is not used yet.
        aliases = {e.expr.name: e.name for e in plan.exprs if isinstance(e.expr, Column)}
        extra: list[Named] = []
        for name in sorted(columns_of(*terms) - aliases.keys()):
            alias = name if name not in selected else fresh_name(name, [*selected, *child.schema.names])
            aliases[name] = alias
            extra.append(Named(child.column(name), alias))
        return Projection(child, (*plan.exprs, *extra)), [rename_columns(x, aliases) for x in terms]

    def join(self, plan: Join) -> PulledUp:
        """Conditions pass from both sides of an inner join, and from the left side of other joins that do not pad it."""
        if plan.kind is JoinKind.INNER:
            return self._inner_join(plan)
        if plan.kind in (JoinKind.RIGHT, JoinKind.FULL):
            raise _cannot_pass(plan)
        if is_correlated(plan.right) or any(map(_reads_outer, plan.expressions)):
            raise Unsupported(f"a subquery correlated inside a {plan.kind} join is not supported")
        left, terms = self.pull(plan.left)
        return plan.with_children([left, plan.right]), terms

    def _inner_join(self, plan: Join) -> PulledUp:
        """Pull from both sides: an inner join outputs all columns that the conditions of either side read."""
        left, left_terms = self.pull(plan.left)
        right, right_terms = self.pull(plan.right)
        if any(_reads_outer(k.left) or _reads_outer(k.right) for k in plan.keys):
            raise Unsupported("this correlation of a subquery is not supported")
        condition, correlated = _without_correlated(plan.condition)
        joined = replace(plan, left=left, right=right, condition=condition)
        return joined, [*left_terms, *right_terms, *correlated]

    def sort(self, plan: Sort) -> PulledUp:
        """Drop the sort, because the join above does not preserve its order anyway."""
        if any(map(_reads_outer, plan.expressions)):
            raise _cannot_pass(plan)
        return self.pull(plan.child)

    def aggregate(self, plan: Aggregate) -> PulledUp:
        """Group also by the inner side of each equality: ``#a = outer(#x)`` makes ``#a`` a grouping key."""
        self._check_aggregate(plan)
        child, terms = self.pull(plan.child)
        if self.outer_query is not None and any(_equality(x) is None for x in terms):
            return _aggregate_of_pairs(plan, child, terms, self.outer_query)
        # Inner expressions that are keys already are not added a second time.
        keys = list(plan.keys)
        key_columns = {k.expr: k.column for k in plan.keys}
        # Each condition inner = outer becomes key = outer above the aggregate. Each outer row then reads one of the
        # groups.
        above: list[Expr] = []
        for term in terms:
            sides = _equality(term)
            if sides is None:
                raise Unsupported(f"an aggregating subquery correlated by {term} is not supported")
            inner, outer = sides
            if inner not in key_columns:
                used_names = [k.name for k in keys] + [a.name for a in plan.aggregates]
                keys.append(Named(inner, fresh_name(_key_name(inner), used_names)))
                key_columns[inner] = keys[-1].column
            above.append(Call.of("eq", key_columns[inner], outer))
        return Aggregate(child, tuple(keys), plan.aggregates), above

    def _check_aggregate(self, plan: Aggregate) -> None:
        """Raise Unsupported if adding grouping keys would change the result.

        An aggregate without keys returns a row even for no input. EXISTS over it is always true, but with keys there would
        be no group for some outer rows.
        """
        if any(map(_reads_outer, plan.expressions)):
            raise Unsupported("a subquery that aggregates a value of the query around it is not supported")
        if self.existence and not plan.keys:
            raise Unsupported("EXISTS or IN over a correlated aggregate without GROUP BY is not supported")
        if any(isinstance(n, Aggregate) and not n.keys and is_correlated(n) for n in walk_plan(plan.child)):
            raise Unsupported(
                "a correlated aggregate without GROUP BY inside another aggregate is not supported"
            )


#: The classes of nodes that conditions can pass. All other nodes are barriers.
_PULLS: dict[type, Callable[[_Decorrelation, Any], PulledUp]] = {
    Filter: _Decorrelation.filter,
    Projection: _Decorrelation.projection,
    Aggregate: _Decorrelation.aggregate,
    Join: _Decorrelation.join,
    Sort: _Decorrelation.sort,
}


def _cannot_pass(plan: LogicalPlan) -> Unsupported:
    return Unsupported(f"a subquery correlated below a {type(plan).__name__} is not supported")


def _without_correlated(condition: Expr | None) -> tuple[Expr | None, list[Expr]]:
    """Split a condition into the part that reads no OuterColumn and the correlated terms."""
    terms = conjuncts(condition)
    return conjunction([x for x in terms if not _reads_outer(x)]), [x for x in terms if _reads_outer(x)]


def _key_name(expr: Expr) -> str:
    return expr.name if isinstance(expr, Column) else "key"


def _aggregate_of_pairs(
    plan: Aggregate, child: LogicalPlan, terms: list[Expr], outer_query: OuterQuery
) -> PulledUp:
    """Decorrelate an aggregate whose conditions are not only equalities.

    For ``(SELECT count(*) FROM b WHERE b.price < outer(price))`` with the outer prices 10, 10 and 20 and the inner prices
    5, 15 and 25:

    1. The distinct outer values are 10 and 20.
    2. Joined with the inner rows by the condition, they give the pairs (10, 5), (20, 5) and (20, 15).
    3. Grouped by the outer value, the counts are 10: 1 and 20: 2.
    4. The outer query joins these groups by ``price <=> outer(price)``; both outer rows with 10 get the count 1.
    """
    outer_plan, _ = outer_query
    names, outer_values = _outer_values(terms, outer_query)
    keys = _with_unique_names(names, outer_values, [*child.schema.names, *plan.schema.names])
    values = Aggregate(outer_plan, tuple(keys), ())
    columns: dict[str, Expr] = {n: values.column(k.name) for n, k in zip(names, keys, strict=True)}
    condition = conjunction([bind_outer(x, columns) for x in terms])
    on, residual = split_condition(condition, values.schema.names, child.schema.names)
    pairs = Join(values, child, JoinKind.INNER, tuple(on), conjunction(residual))
    grouped = tuple(Named(pairs.column(k.name), k.name) for k in keys)
    by_pair = Aggregate(pairs, (*plan.keys, *grouped), plan.aggregates)
    outers = [OuterColumn(n, k.expr.dtype, k.expr.nullable) for n, k in zip(names, keys, strict=True)]
    compared = zip(keys, outers, strict=True)
    return by_pair, [Call.of("eq_null_safe", by_pair.column(k.name), o) for k, o in compared]


def _outer_values(terms: list[Expr], outer_query: OuterQuery) -> tuple[list[str], list[Expr]]:
    """Return the names of the OuterColumns that the terms read, and their expressions over the outer plan.

    The outer plan will be in the query twice, so it has to return the same rows both times.
    """
    outer_plan, outer = outer_query
    names = sorted({e.name for x in terms for e in walk(x) if isinstance(e, OuterColumn)})
    values = [outer[n] for n in names if n in outer]
    if (
        len(values) < len(names)
        or any(map(_reads_outer, values))
        or not is_repeatable(outer_plan, _REPEATABLE)
    ):
        raise Unsupported(
            f"an aggregating subquery correlated by {' and '.join(map(str, terms))} is not supported here"
        )
    return names, values


def _with_unique_names(names: list[str], exprs: list[Expr], used_names: list[str]) -> list[Named]:
    """Name the expressions; a name that is already used gets a number at its end."""
    named: list[Named] = []
    for name, expr in zip(names, exprs, strict=True):
        named.append(Named(expr, fresh_name(name, [*used_names, *(n.name for n in named)])))
    return named


def _equality(term: Expr) -> tuple[Expr, Expr] | None:
    """Return (inner, outer) if the term is ``inner = outer``, where each side reads only one of the two plans; else None."""
    if not (isinstance(term, Call) and term.logic is Logic.EQUAL):
        return None
    # Both orders: inner = outer, and outer = inner.
    for inner, outer in (term.args, term.args[::-1]):
        if not _reads_outer(inner) and columns_of(inner) and _reads_outer(outer) and not columns_of(outer):
            return inner, outer
    return None


def with_disjoint_names(plan: LogicalPlan, other: LogicalPlan) -> tuple[LogicalPlan, dict[str, str]]:
    """Rename the columns of ``plan`` that ``other`` has, too. Return the renamed plan and the new names by old name."""
    used_names = set(other.schema.names)
    aliases = {
        n: fresh_name(n, [*used_names, *plan.schema.names]) for n in plan.schema.names if n in used_names
    }
    if not aliases:
        return plan, {}
    renamed = tuple(Named(plan.column(n), aliases.get(n, n)) for n in plan.schema.names)
    return Projection(plan, renamed), aliases

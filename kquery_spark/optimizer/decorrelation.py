"""Decorrelation: conditions on the row around a subquery are pulled up to where a join can have them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from kquery_spark.errors import Unsupported
from kquery_spark.expr import (
    AggregateCall,
    Call,
    Column,
    Expr,
    Named,
    columns_of,
    rename_columns,
    transform,
    walk,
)
from kquery_spark.expr.properties import conjunction, conjuncts, is_deterministic
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
from kquery_spark.logical.subqueries import OuterColumn, Subquery
from kquery_spark.types import names as t

#: The plan that a subquery is joined to, and what the subquery's outer columns are in it.
Around = tuple[LogicalPlan, dict[str, Expr]]
#: A plan without correlated conditions, and these, over columns the plan has in its output.
Pulled = tuple[LogicalPlan, list[Expr]]


def _reads_outer(expr: Expr) -> bool:
    return any(isinstance(e, OuterColumn) for e in walk(expr))


def is_correlated(plan: LogicalPlan) -> bool:
    """Whether a plan reads values of the row around it."""
    return any(_reads_outer(e) for node in walk_plan(plan) for e in node.expressions)


def bind_outer(expr: Expr, outer: dict[str, Expr]) -> Expr:
    """The expression with what its outer columns stand for, by their names."""
    return transform(expr, lambda e: outer.get(e.name, e) if isinstance(e, OuterColumn) else e)


def pull_up(plan: LogicalPlan, existence: bool, around: Around | None = None) -> Pulled:
    """The plan without its correlated conditions, and those.

    ``existence``: only whether there are rows matters, not how many. ``around``: the plan around and what the outer
    columns are in it, for aggregates that need its values. Unsupported names the node that conditions cannot pass.
    """
    return _Decorrelation(existence, around).pull(plan)


@dataclass(frozen=True)
class _Decorrelation:
    existence: bool
    around: Around | None

    def pull(self, plan: LogicalPlan) -> Pulled:
        if not is_correlated(plan):
            return plan, []
        pull_node = _PULLS.get(type(plan))
        if pull_node is None:
            raise _below(plan)
        return pull_node(self, plan)

    def filter(self, plan: Filter) -> Pulled:
        child, terms = self.pull(plan.child)
        condition, correlated = _without_correlated(plan.condition)
        return (child if condition is None else Filter(child, condition)), [*terms, *correlated]

    def projection(self, plan: Projection) -> Pulled:
        """Select what the conditions read, too."""
        if any(map(_reads_outer, plan.expressions)):
            raise Unsupported("a subquery that selects a value of the query around it is not supported")
        child, terms = self.pull(plan.child)
        selected = {e.name for e in plan.exprs}
        aliases = {e.expr.name: e.name for e in plan.exprs if isinstance(e.expr, Column)}
        extra: list[Named] = []
        for name in sorted(columns_of(*terms) - aliases.keys()):
            alias = name if name not in selected else fresh_name(name, [*selected, *child.schema.names])
            aliases[name] = alias
            extra.append(Named(child.column(name), alias))
        return Projection(child, (*plan.exprs, *extra)), [rename_columns(x, aliases) for x in terms]

    def join(self, plan: Join) -> Pulled:
        if plan.kind is JoinKind.INNER:
            return self._inner_join(plan)
        if plan.kind in (JoinKind.RIGHT, JoinKind.FULL):
            raise _below(plan)
        if is_correlated(plan.right) or any(map(_reads_outer, plan.expressions)):
            raise Unsupported(f"a subquery correlated inside a {plan.kind} join is not supported")
        left, terms = self.pull(plan.left)
        return plan.with_children([left, plan.right]), terms

    def _inner_join(self, plan: Join) -> Pulled:
        left, left_terms = self.pull(plan.left)
        right, right_terms = self.pull(plan.right)
        if any(_reads_outer(k.left) or _reads_outer(k.right) for k in plan.keys):
            raise Unsupported("this correlation of a subquery is not supported")
        condition, correlated = _without_correlated(plan.condition)
        joined = replace(plan, left=left, right=right, condition=condition)
        return joined, [*left_terms, *right_terms, *correlated]

    def sort(self, plan: Sort) -> Pulled:
        """Order is nothing that a join keeps."""
        if any(map(_reads_outer, plan.expressions)):
            raise _below(plan)
        return self.pull(plan.child)

    def aggregate(self, plan: Aggregate) -> Pulled:
        """Group by what the inner rows are compared on, too."""
        self._check_aggregate(plan)
        child, terms = self.pull(plan.child)
        if self.around is not None and any(_equality(x) is None for x in terms):
            return _aggregate_of_pairs(plan, child, terms, self.around)
        keys = list(plan.keys)
        key_columns = {k.expr: k.column for k in plan.keys}
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
        """Raise Unsupported if the aggregate cannot be grouped by more keys."""
        if any(map(_reads_outer, plan.expressions)):
            raise Unsupported("a subquery that aggregates a value of the query around it is not supported")
        if self.existence and not plan.keys:
            raise Unsupported("EXISTS or IN over a correlated aggregate without GROUP BY is not supported")
        if any(isinstance(n, Aggregate) and not n.keys and is_correlated(n) for n in walk_plan(plan.child)):
            raise Unsupported(
                "a correlated aggregate without GROUP BY inside another aggregate is not supported"
            )


#: How conditions pass each node; they cannot pass others.
_PULLS: dict[type, Callable[[_Decorrelation, Any], Pulled]] = {
    Filter: _Decorrelation.filter,
    Projection: _Decorrelation.projection,
    Aggregate: _Decorrelation.aggregate,
    Join: _Decorrelation.join,
    Sort: _Decorrelation.sort,
}


def _below(plan: LogicalPlan) -> Unsupported:
    return Unsupported(f"a subquery correlated below a {type(plan).__name__} is not supported")


def _without_correlated(condition: Expr | None) -> tuple[Expr | None, list[Expr]]:
    """A condition without its correlated terms, and these."""
    terms = conjuncts(condition)
    return conjunction([x for x in terms if not _reads_outer(x)]), [x for x in terms if _reads_outer(x)]


def _key_name(expr: Expr) -> str:
    return expr.name if isinstance(expr, Column) else "key"


def _aggregate_of_pairs(plan: Aggregate, child: LogicalPlan, terms: list[Expr], around: Around) -> Pulled:
    """Correlated by more than equalities: the different outer values, joined to the rows they see, are the groups."""
    plan_around, _ = around
    names, outer_values = _outer_values(terms, around)
    keys = _named_apart(names, outer_values, [*child.schema.names, *plan.schema.names])
    values = Aggregate(plan_around, tuple(keys), ())
    columns: dict[str, Expr] = {n: values.column(k.name) for n, k in zip(names, keys, strict=True)}
    condition = conjunction([bind_outer(x, columns) for x in terms])
    on, residual = split_condition(condition, values.schema.names, child.schema.names)
    pairs = Join(values, child, JoinKind.INNER, tuple(on), conjunction(residual))
    grouped = tuple(Named(pairs.column(k.name), k.name) for k in keys)
    by_pair = Aggregate(pairs, (*plan.keys, *grouped), plan.aggregates)
    outers = [OuterColumn(n, k.expr.dtype, k.expr.nullable) for n, k in zip(names, keys, strict=True)]
    compared = zip(keys, outers, strict=True)
    return by_pair, [Call.of("eq_null_safe", by_pair.column(k.name), o) for k, o in compared]


def _outer_values(terms: list[Expr], around: Around) -> tuple[list[str], list[Expr]]:
    """The outer columns that the terms read, and what they are in the plan around, which must be safe to run twice."""
    plan_around, outer = around
    names = sorted({e.name for x in terms for e in walk(x) if isinstance(e, OuterColumn)})
    values = [outer[n] for n in names if n in outer]
    if len(values) < len(names) or any(map(_reads_outer, values)) or not _is_repeatable(plan_around):
        raise Unsupported(
            f"an aggregating subquery correlated by {' and '.join(map(str, terms))} is not supported here"
        )
    return names, values


def _named_apart(names: list[str], exprs: list[Expr], used_names: list[str]) -> list[Named]:
    """The expressions under these names, numbered where a name is used."""
    named: list[Named] = []
    for name, expr in zip(names, exprs, strict=True):
        named.append(Named(expr, fresh_name(name, [*used_names, *(n.name for n in named)])))
    return named


def _is_repeatable(plan: LogicalPlan) -> bool:
    """Whether computing the plan a second time gives the same rows."""
    nodes = list(walk_plan(plan))
    if not all(isinstance(n, Scan | Filter | Projection | Join | Aggregate | Sort | Union) for n in nodes):
        return False
    return all(_gives_same(e) for node in nodes for x in node.expressions for e in walk(x))


def _gives_same(expr: Expr) -> bool:
    """Whether an expression gives the same over the same rows in any order."""
    if isinstance(expr, Subquery) or not is_deterministic(expr):
        return False
    if not isinstance(expr, AggregateCall):
        return True
    return expr.entry.repeatable and not any(t.is_fractional(a.dtype) for a in expr.args)


def _equality(term: Expr) -> tuple[Expr, Expr] | None:
    """``inner = outer`` as (inner, outer)."""
    if not (isinstance(term, Call) and term.function == "eq"):
        return None
    for inner, outer in (term.args, term.args[::-1]):
        if not _reads_outer(inner) and columns_of(inner) and _reads_outer(outer) and not columns_of(outer):
            return inner, outer
    return None


def disjoint(plan: LogicalPlan, other: LogicalPlan) -> tuple[LogicalPlan, dict[str, str]]:
    """The plan with columns renamed that another plan has, too, and how."""
    used_names = set(other.schema.names)
    aliases = {
        n: fresh_name(n, [*used_names, *plan.schema.names]) for n in plan.schema.names if n in used_names
    }
    if not aliases:
        return plan, {}
    renamed = tuple(Named(plan.column(n), aliases.get(n, n)) for n in plan.schema.names)
    return Projection(plan, renamed), aliases

"""Decorrelation: conditions on the row around a subquery are pulled up to where a join can have them."""

from __future__ import annotations

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


def _reads_outer(expr: Expr) -> bool:
    return any(isinstance(e, OuterColumn) for e in walk(expr))


def is_correlated(plan: LogicalPlan) -> bool:
    """Whether a plan reads values of the row around it."""
    return any(_reads_outer(e) for node in walk_plan(plan) for e in node.expressions)


def bind_outer(expr: Expr, outer: dict[str, Expr]) -> Expr:
    """The expression with what its outer columns stand for, by their names."""
    return transform(expr, lambda e: outer.get(e.name, e) if isinstance(e, OuterColumn) else e)


def pull_up(
    plan: LogicalPlan, existence: bool, around: Around | None = None
) -> tuple[LogicalPlan, list[Expr]]:
    """The plan without its correlated conditions, and those, over columns the new plan has in its output.

    ``existence``: only whether there are rows matters, not how many. ``around``: the plan around and what the outer
    columns are in it, for aggregates that need its values.
    """
    if not is_correlated(plan):
        return plan, []
    match plan:
        case Filter():
            child, terms = pull_up(plan.child, existence, around)
            every = conjuncts(plan.condition)
            mine = [x for x in every if _reads_outer(x)]
            stay = conjunction([x for x in every if not _reads_outer(x)])
            return (child if stay is None else Filter(child, stay)), [*terms, *mine]
        case Projection():
            if any(_reads_outer(e.expr) for e in plan.exprs):
                raise Unsupported("A subquery that selects a value of the query around it is not supported.")
            child, terms = pull_up(plan.child, existence, around)
            have = {e.name for e in plan.exprs}
            by_column = {e.expr.name: e.name for e in plan.exprs if isinstance(e.expr, Column)}
            needed = columns_of(*terms)
            renames: dict[str, str] = {}
            extra: list[Named] = []
            for name in sorted(needed):
                if name in by_column:
                    renames[name] = by_column[name]
                    continue
                new = name if name not in have else fresh_name(name, [*have, *child.schema.names])
                renames[name] = new
                extra.append(Named(child.column(name), new))
            return (
                Projection(child, (*plan.exprs, *extra)),
                [rename_columns(x, renames) for x in terms],
            )
        case Aggregate():
            return _pull_aggregate(plan, existence, around)
        case Join(kind=JoinKind.INNER):
            left, left_terms = pull_up(plan.left, existence, around)
            right, right_terms = pull_up(plan.right, existence, around)
            every = conjuncts(plan.condition)
            if any(_reads_outer(k.left) or _reads_outer(k.right) for k in plan.keys):
                raise Unsupported("This correlation of a subquery is not supported.")
            mine = [x for x in every if _reads_outer(x)]
            stay = conjunction([x for x in every if not _reads_outer(x)])
            joined = Join(left, right, plan.kind, plan.keys, stay)
            return joined, [*left_terms, *right_terms, *mine]
        case Join(kind=JoinKind.LEFT | JoinKind.SEMI | JoinKind.ANTI | JoinKind.EXISTENCE):
            if is_correlated(plan.right) or any(_reads_outer(e) for e in plan.expressions):
                raise Unsupported(f"A subquery correlated inside a {plan.kind} join is not supported.")
            left, terms = pull_up(plan.left, existence, around)
            return plan.with_children([left, plan.right]), terms
        case Sort():
            if not any(_reads_outer(e) for e in plan.expressions):
                return pull_up(plan.child, existence, around)
    raise Unsupported(f"A subquery correlated below a {type(plan).__name__} is not supported.")


def _pull_aggregate(
    plan: Aggregate, existence: bool, around: Around | None
) -> tuple[LogicalPlan, list[Expr]]:
    """Group by what the inner rows are compared on, too."""
    if any(_reads_outer(e) for e in plan.expressions):
        raise Unsupported("A subquery that aggregates a value of the query around it is not supported.")
    if existence and not plan.keys:
        raise Unsupported("EXISTS or IN over a correlated aggregate without GROUP BY is not supported.")
    if any(isinstance(n, Aggregate) and not n.keys and is_correlated(n) for n in walk_plan(plan.child)):
        raise Unsupported(
            "A correlated aggregate without GROUP BY inside another aggregate is not supported."
        )
    child, terms = pull_up(plan.child, existence, around)
    if around is not None and any(_equality(x) is None for x in terms):
        return _aggregate_of_pairs(plan, child, terms, around)
    keys = list(plan.keys)
    known = {k.expr: k.column for k in plan.keys}
    above: list[Expr] = []
    for term in terms:
        sides = _equality(term)
        if sides is None:
            raise Unsupported(f"An aggregating subquery correlated by {term} is not supported.")
        inner, outer = sides
        if inner not in known:
            taken = [k.name for k in keys] + [a.name for a in plan.aggregates]
            wanted = inner.name if isinstance(inner, Column) else "key"
            named = Named(inner, fresh_name(wanted, taken))
            keys.append(named)
            known[inner] = named.column
        above.append(Call.of("eq", known[inner], outer))
    return Aggregate(child, tuple(keys), plan.aggregates), above


def _aggregate_of_pairs(
    plan: Aggregate, child: LogicalPlan, terms: list[Expr], around: Around
) -> tuple[LogicalPlan, list[Expr]]:
    """Correlated by more than equalities: the different outer values, joined to the rows they see, are the groups."""
    below, outer = around
    names = sorted({e.name for x in terms for e in walk(x) if isinstance(e, OuterColumn)})
    wanted = [outer[n] for n in names if n in outer]
    if len(wanted) < len(names) or any(map(_reads_outer, wanted)) or not _repeatable(below):
        raise Unsupported(
            f"An aggregating subquery correlated by {' and '.join(map(str, terms))} is not supported here."
        )
    taken = [*child.schema.names, *plan.schema.names]
    keys: list[Named] = []
    for name, expr in zip(names, wanted, strict=True):
        keys.append(Named(expr, fresh_name(name, taken)))
        taken.append(keys[-1].name)
    values = Aggregate(below, tuple(keys), ())
    columns = {n: values.column(k.name) for n, k in zip(names, keys, strict=True)}
    condition = conjunction([bind_outer(x, dict(columns)) for x in terms])
    on, rest = split_condition(condition, values.schema.names, child.schema.names)
    pairs = Join(values, child, JoinKind.INNER, tuple(on), conjunction(rest))
    grouped = tuple(Named(pairs.column(k.name), k.name) for k in keys)
    done = Aggregate(pairs, (*plan.keys, *grouped), plan.aggregates)
    outers = [OuterColumn(n, k.expr.dtype, k.expr.nullable) for n, k in zip(names, keys, strict=True)]
    return done, [Call.of("eq_null_safe", done.column(k.name), o) for k, o in zip(keys, outers, strict=True)]


def _repeatable(plan: LogicalPlan) -> bool:
    """Whether computing the plan a second time gives the same rows."""
    for node in walk_plan(plan):
        if not isinstance(node, Scan | Filter | Projection | Join | Aggregate | Sort | Union):
            return False
        for expr in (e for x in node.expressions for e in walk(x)):
            if not is_deterministic(expr) or isinstance(expr, Subquery):
                return False
            if isinstance(expr, AggregateCall) and (
                expr.function not in ("count", "min", "max", "sum", "avg")
                or any(t.is_fractional(a.dtype) for a in expr.args)
            ):
                return False
    return True


def _equality(term: Expr) -> tuple[Expr, Expr] | None:
    """``inner = outer`` as (inner, outer)."""
    if not (isinstance(term, Call) and term.function == "eq"):
        return None
    for inner, outer in (term.args, term.args[::-1]):
        if not _reads_outer(inner) and columns_of(inner) and _reads_outer(outer) and not columns_of(outer):
            return inner, outer
    return None

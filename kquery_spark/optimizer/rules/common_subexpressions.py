"""What a filter and the node above it both compute is computed once."""

from __future__ import annotations

from collections.abc import Iterator

from kquery_spark.expr import Call, Case, Cast, Expr, Named, walk
from kquery_spark.expr.properties import is_constant, is_deterministic
from kquery_spark.logical import Aggregate, Filter, LogicalPlan, Projection, transform_plan
from kquery_spark.logical.plan import fresh_name
from kquery_spark.types import names as t


def common_subexpressions(plan: LogicalPlan) -> LogicalPlan:
    """``Projection: #price * #qty`` over ``Filter: #price * #qty > 10`` reads ``#common`` of a projection below both.

    All columns of the input survive. Within one node the compiled program shares equal expressions by itself.
    """
    return transform_plan(plan, _share)


def _share(node: LogicalPlan) -> LogicalPlan:
    if not (isinstance(node, Projection | Aggregate) and isinstance(node.child, Filter)):
        return node
    below = node.child
    above = {e for x in node.expressions for e in walk(x) if _worth(e)}
    found: list[Expr] = []
    for expr in _always_computed(below.condition):
        if expr in above and expr not in found and not any(expr in list(walk(f)) for f in found):
            found.append(expr)
    if not found:
        return node
    taken = set(below.child.schema.names)
    made: dict[Expr, Named] = {}
    for expr in found:
        made[expr] = Named(expr, fresh_name("common", taken))
        taken.add(made[expr].name)
    columns = tuple(Named(below.child.column(n), n) for n in below.child.schema.names)
    computed = Projection(below.child, (*columns, *made.values()))
    filtered = Filter(computed, _replaced(below.condition, made))
    return node.with_children([filtered]).map_expressions(lambda e: _replaced(e, made))


# Spark evaluates the other arguments of these only for the rows that need them.
_FIRST_ONLY = ("coalesce", "nvl2", "nullif", "nanvl", "elt")


def _worth(expr: Expr) -> bool:
    """Whether an expression costs more to compute again than to carry."""
    costs = isinstance(expr, Call | Cast) and expr.dtype != t.BOOL
    return costs and not is_constant(expr) and is_deterministic(expr)


def _always_computed(expr: Expr) -> Iterator[Expr]:
    """Expressions of a condition that are evaluated for every row, outermost first."""
    if _worth(expr):
        yield expr
    if isinstance(expr, Case):
        return
    children = (
        expr.children[:1] if isinstance(expr, Call) and expr.function in ("and", "or") else expr.children
    )
    if isinstance(expr, Call) and expr.function in _FIRST_ONLY:
        children = expr.children[:1]
    for child in children:
        yield from _always_computed(child)


def _replaced(expr: Expr, made: dict[Expr, Named]) -> Expr:
    found = made.get(expr)
    if found is not None:
        return found.column
    if not expr.children:
        return expr
    return expr.with_children([_replaced(c, made) for c in expr.children])

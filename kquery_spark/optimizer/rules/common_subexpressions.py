"""What a filter and the node above it both compute is computed once."""

from __future__ import annotations

from collections.abc import Iterator

from kquery_spark.expr import Call, Case, Cast, Expr, Named, walk
from kquery_spark.expr.properties import can_raise, is_constant, is_deterministic
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
    shared = _shared(below.condition, node)
    if not shared:
        return node
    used_names = set(below.child.schema.names)
    computed: dict[Expr, Named] = {}
    for expr in shared:
        computed[expr] = Named(expr, fresh_name("common", used_names))
        used_names.add(computed[expr].name)
    columns = tuple(Named(below.child.column(n), n) for n in below.child.schema.names)
    projection = Projection(below.child, (*columns, *computed.values()))
    filtered = Filter(projection, _replaced(below.condition, computed))
    return node.with_children([filtered]).map_expressions(lambda e: _replaced(e, computed))


def _shared(condition: Expr, above: LogicalPlan) -> list[Expr]:
    """The largest expressions that the condition always computes and the node above it computes again."""
    above_exprs = {e for x in above.expressions for e in walk(x) if _is_worth_carrying(e)}
    shared: list[Expr] = []
    inside: set[Expr] = set()
    for expr in _always_computed(condition):
        if expr in above_exprs and expr not in inside:
            shared.append(expr)
            inside.update(walk(expr))
    return shared


def _is_worth_carrying(expr: Expr) -> bool:
    """Whether an expression costs more to compute again than to carry."""
    costs = isinstance(expr, Call | Cast) and expr.dtype != t.BOOL
    return costs and not is_constant(expr) and is_deterministic(expr)


def _always_computed(expr: Expr, raising_too: bool = True) -> Iterator[Expr]:
    """Expressions of a condition that are evaluated for every row, outermost first.

    raising_too: also those that can raise. A strict function stops at the first NULL, so what can raise behind another
    argument stays where a NULL keeps rows from it.
    """
    if _is_worth_carrying(expr) and (raising_too or not can_raise(expr)):
        yield expr
    if isinstance(expr, Case):
        return
    if isinstance(expr, Call) and expr.entry.lazy:
        yield from _always_computed(expr.args[0], raising_too)
        return
    order = expr.entry.evaluation_order(len(expr.args)) if isinstance(expr, Call) else ()
    for position, child in enumerate(expr.children):
        yield from _always_computed(child, raising_too and (not order or position == order[0]))


def _replaced(expr: Expr, computed: dict[Expr, Named]) -> Expr:
    named = computed.get(expr)
    if named is not None:
        return named.column
    if not expr.children:
        return expr
    return expr.with_children([_replaced(c, computed) for c in expr.children])

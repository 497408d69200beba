"""Computes an expression once if both a filter and the node above it need it."""

from __future__ import annotations

from kquery_spark.expr import Call, Cast, Expr, Named, walk
from kquery_spark.expr.properties import always_evaluated, is_constant, is_deterministic
from kquery_spark.logical import Aggregate, Filter, LogicalPlan, Projection, transform_plan
from kquery_spark.logical.plan import fresh_name
from kquery_spark.types import names as t


def common_subexpressions(plan: LogicalPlan) -> LogicalPlan:
    """Move expressions that a filter and the node above it share into a projection below both.

        Projection: #price * #qty AS total             Projection: #common AS total
          Filter: #price * #qty > 10             ->      Filter: #common > 10
            Scan: sales                                    Projection: ..., #price * #qty AS common
                                                             Scan: sales

    Only this pattern needs a rule: equal expressions within one node are shared by its compiled program. The new projection
    passes on all columns of its input.
    """
    return transform_plan(plan, _share)


def _share(node: LogicalPlan) -> LogicalPlan:
    if not (isinstance(node, Projection | Aggregate) and isinstance(node.child, Filter)):
        return node
    below = node.child
    shared = _shared_expressions(below.condition, node)
    if not shared:
        return node
    # Each shared expression becomes a column of a new projection below the filter, next to all columns of its input.
    used_names = set(below.child.schema.names)
    computed: dict[Expr, Named] = {}
    for expr in shared:
        computed[expr] = Named(expr, fresh_name("common", used_names))
        used_names.add(computed[expr].name)
    columns = tuple(Named(below.child.column(n), n) for n in below.child.schema.names)
    projection = Projection(below.child, (*columns, *computed.values()))
    filtered = Filter(projection, _use_computed(below.condition, computed))
    return node.with_children([filtered]).map_expressions(lambda e: _use_computed(e, computed))


def _shared_expressions(condition: Expr, above: LogicalPlan) -> list[Expr]:
    """Return the largest expressions that the condition computes for every row and the node above computes again."""
    above_exprs = {e for x in above.expressions for e in walk(x) if _is_worth_carrying(e)}
    shared: list[Expr] = []
    inside: set[Expr] = set()
    for expr in filter(_is_worth_carrying, always_evaluated(condition)):
        if expr in above_exprs and expr not in inside:
            shared.append(expr)
            # Its operands need no columns of their own, because they are computed inside of it.
            inside.update(walk(expr))
    return shared


def _is_worth_carrying(expr: Expr) -> bool:
    """True if computing the expression again costs more than carrying an additional column through the filter."""
    is_computation = isinstance(expr, Call | Cast) and expr.dtype != t.BOOL
    return is_computation and not is_constant(expr) and is_deterministic(expr)


def _use_computed(expr: Expr, computed: dict[Expr, Named]) -> Expr:
    """Replace the computed subexpressions by their columns."""
    named = computed.get(expr)
    if named is not None:
        return named.column
    if not expr.children:
        return expr
    return expr.with_children([_use_computed(c, computed) for c in expr.children])

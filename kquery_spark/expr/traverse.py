"""Walking and rewriting expressions; rewriting makes copies and shares what did not change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kquery_spark.expr.nodes import Column, Expr
from kquery_spark.run_control import check_run


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and everything below it, parents first, left to right."""
    check_run()
    pending = [expr]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(node.children))


def transform(expr: Expr, rule: Callable[[Expr], Expr]) -> Expr:
    """Rewrite bottom-up: children first, then ``rule`` on the node rebuilt from them."""
    children = expr.children
    if children:
        check_run()
        changed = [transform(c, rule) for c in children]
        if any(a is not b for a, b in zip(changed, children, strict=True)):
            expr = expr.with_children(changed)
    return rule(expr)


def columns_of(*exprs: Expr) -> set[str]:
    """Names of all columns the expressions read."""
    return {e.name for expr in exprs for e in walk(expr) if isinstance(e, Column)}


def substitute(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Replace columns by expressions, by name."""
    return transform(expr, lambda e: values.get(e.name, e) if isinstance(e, Column) else e)


def rename_columns(expr: Expr, names: Mapping[str, str]) -> Expr:
    """Point columns at other names, keeping type and nullability."""
    return transform(
        expr,
        lambda e: Column(names[e.name], e.type, e.null) if isinstance(e, Column) and e.name in names else e,
    )

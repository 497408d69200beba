"""The expressions of a SELECT that are rewritten together as its plan grows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kquery_spark.expr import Expr


@dataclass(frozen=True)
class BlockExpressions:
    """The select list, the sort keys, HAVING and QUALIFY, over the rows of the plan so far."""

    items: tuple[Expr, ...]
    sort_keys: tuple[Expr, ...]
    having: Expr | None
    qualify: Expr | None

    def __iter__(self) -> Iterator[Expr]:
        yield from self.items
        yield from self.sort_keys
        yield from (condition for condition in (self.having, self.qualify) if condition is not None)

    def map(self, rewrite: Callable[[Expr], Expr]) -> BlockExpressions:
        """Rewrite all expressions, in the order of iteration."""
        items = tuple(rewrite(item) for item in self.items)
        return BlockExpressions(items, self.sort_keys, self.having, self.qualify).map_others(rewrite)

    def map_others(self, rewrite: Callable[[Expr], Expr]) -> BlockExpressions:
        """Rewrite all expressions except those of the select list, in the order of iteration."""
        sort_keys = tuple(rewrite(key) for key in self.sort_keys)
        having = None if self.having is None else rewrite(self.having)
        qualify = None if self.qualify is None else rewrite(self.qualify)
        return BlockExpressions(self.items, sort_keys, having, qualify)

"""UserCall: a function of the user's own applied to arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr.nodes import Expr


@dataclass(frozen=True)
class UserCall(Expr):
    """``name(args)``; ``code`` is the function itself, pickled.

    It can raise, so rows that a condition excludes are not shown to it. Its value may always be NULL.
    """

    name: str
    args: tuple[Expr, ...]
    type: pa.DataType
    deterministic: bool
    code: bytes = field(repr=False)

    @property
    @override
    def dtype(self) -> pa.DataType:
        return self.type

    @property
    @override
    def nullable(self) -> bool:
        return True

    @property
    @override
    def children(self) -> tuple[Expr, ...]:
        return self.args

    @override
    def with_children(self, children: Sequence[Expr]) -> Expr:
        return replace(self, args=tuple(children))

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.args))})"

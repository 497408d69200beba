"""Combine rows of two inputs."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import PlanError
from kquery_spark.expr import Expr, columns_of
from kquery_spark.expr.properties import is_pure
from kquery_spark.logical.plan import BinaryPlan, LogicalPlan
from kquery_spark.types.names import spark_name
from kquery_spark.types.str_enum import StrEnum


class JoinKind(StrEnum):
    """Which rows come out; SEMI and ANTI give left columns only."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"
    EXISTENCE = "existence"

    @property
    def only_tests_right(self) -> bool:
        """Whether the right side only decides about left rows, so that it does not matter how often a row is there."""
        return self in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.EXISTENCE)

    @property
    def pads_left(self) -> bool:
        """Whether right rows without a match come out with NULLs for the left columns."""
        return self in (JoinKind.RIGHT, JoinKind.FULL)

    @property
    def pads_right(self) -> bool:
        """Whether left rows without a match come out with NULLs for the right columns."""
        return self in (JoinKind.LEFT, JoinKind.FULL)


@dataclass(frozen=True)
class JoinKey:
    """One equality between the sides, of the same type; ``null_safe`` is ``<=>``."""

    left: Expr
    right: Expr
    null_safe: bool = False

    def __str__(self) -> str:
        return f"{self.left} {'<=>' if self.null_safe else '='} {self.right}"


@dataclass(frozen=True)
class Join(BinaryPlan):
    """Pairs that satisfy every key and the residual ``condition``; no keys means comparing all pairs.

    ``null_aware`` (ANTI only) is NOT IN: a NULL on either side makes the comparison unknown.
    ``exists`` names the boolean column that an EXISTENCE join adds to the left rows.
    """

    left: LogicalPlan
    right: LogicalPlan
    kind: JoinKind
    keys: tuple[JoinKey, ...] = ()
    condition: Expr | None = None
    null_aware: bool = False
    exists: str = ""

    carries_columns: ClassVar[bool] = True

    @override
    def derive_schema(self) -> pa.Schema:
        left, right = list(self.left.schema), list(self.right.schema)
        if self.kind in (JoinKind.SEMI, JoinKind.ANTI):
            return pa.schema(left)
        if self.kind is JoinKind.EXISTENCE:
            return pa.schema([*left, pa.field(self.exists, pa.bool_(), nullable=False)])
        if self.kind.pads_left:
            left = [f.with_nullable(True) for f in left]
        if self.kind.pads_right:
            right = [f.with_nullable(True) for f in right]
        return pa.schema(left + right)

    @override
    def validate(self) -> None:
        super().validate()
        both = self.left.column_names & self.right.column_names
        if both:
            raise PlanError(f"column {min(both)} is ambiguous: both sides of the join have it")
        for key in self.keys:
            if key.left.dtype != key.right.dtype:
                raise PlanError(
                    f"join key {key} compares {spark_name(key.left.dtype)} with {spark_name(key.right.dtype)}"
                )

    @property
    def compares_nothing(self) -> bool:
        """Whether every pair of rows satisfies it."""
        return not self.keys and self.condition is None

    @property
    @override
    def expressions(self) -> tuple[Expr, ...]:
        keys = tuple(e for k in self.keys for e in (k.left, k.right))
        return keys if self.condition is None else (*keys, self.condition)

    @override
    def map_expressions(self, rule: Callable[[Expr], Expr]) -> LogicalPlan:
        keys = tuple(JoinKey(rule(k.left), rule(k.right), k.null_safe) for k in self.keys)
        return replace(self, keys=keys, condition=None if self.condition is None else rule(self.condition))

    @override
    def required_columns(self, needed: Set[str]) -> tuple[Set[str], ...]:
        read = needed | columns_of(*self.expressions)
        return read & self.left.column_names, read & self.right.column_names

    @override
    def push_down(self, predicate: Expr) -> tuple[Expr | None, ...] | None:
        """Only a side whose rows are not padded takes a filter from above, and none that can raise."""
        names = columns_of(predicate)
        if not names or not is_pure(predicate):
            return None
        if names <= self.left.column_names and not self.kind.pads_left:
            return predicate, None
        if names <= self.right.column_names and self.kind in (JoinKind.INNER, JoinKind.RIGHT):
            return None, predicate
        return None

    @override
    def sees_order(self, order_is_seen: bool) -> bool:
        return False

    @override
    def ignores_repeats(self, repeats_are_ignored: bool) -> tuple[bool, ...]:
        return repeats_are_ignored, repeats_are_ignored or self.kind.only_tests_right

    @override
    def label(self) -> str:
        parts = [f"{self.kind}{' null-aware' if self.null_aware else ''}"]
        if self.keys:
            parts.append(f"on=[{', '.join(map(str, self.keys))}]")
        if self.condition is not None:
            parts.append(f"condition={self.condition}")
        return f"Join: {', '.join(parts)}"

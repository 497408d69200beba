"""Combines the rows of two inputs."""

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
    """The kinds of joins.

    SEMI and ANTI output left rows with and without a match. EXISTENCE outputs every left row with a boolean column that
    says whether it has a match.
    """

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"
    EXISTENCE = "existence"

    @property
    def only_tests_right(self) -> bool:
        """True if the output has no right columns: right rows only decide about left rows, so duplicates have no effect."""
        return self in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.EXISTENCE)

    @property
    def pads_left(self) -> bool:
        """True if right rows without a match are output with NULLs in the left columns."""
        return self in (JoinKind.RIGHT, JoinKind.FULL)

    @property
    def pads_right(self) -> bool:
        """True if left rows without a match are output with NULLs in the right columns."""
        return self in (JoinKind.LEFT, JoinKind.FULL)


@dataclass(frozen=True)
class JoinKey:
    """One equality between an expression of each side, both of the same type. ``null_safe`` stands for ``<=>``."""

    left: Expr
    right: Expr
    null_safe: bool = False

    def __str__(self) -> str:
        return f"{self.left} {'<=>' if self.null_safe else '='} {self.right}"


@dataclass(frozen=True)
class Join(BinaryPlan):
    """Matches the pairs of rows that satisfy every key and the residual ``condition``. Without keys, all pairs are compared.

    ``null_aware`` (ANTI only) implements NOT IN, where a NULL on either side makes the comparison unknown.
    ``exists`` is the name of the boolean column that an EXISTENCE join adds to the left rows.
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
        in_both = self.left.column_names & self.right.column_names
        if in_both:
            raise PlanError(f"column {min(in_both)} is ambiguous: both sides of the join have it")
        for key in self.keys:
            if key.left.dtype != key.right.dtype:
                raise PlanError(
                    f"join key {key} compares {spark_name(key.left.dtype)} with {spark_name(key.right.dtype)}"
                )

    @property
    def matches_all_pairs(self) -> bool:
        """True if there is nothing to compare, so every pair of rows is a match."""
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

    @property
    def sides_filtered_from_above(self) -> tuple[bool, bool]:
        """For the left and the right side: whether a filter above the join on its columns can filter the side instead."""
        return not self.kind.pads_left, self.kind in (JoinKind.INNER, JoinKind.RIGHT)

    @override
    def push_down(self, predicate: Expr) -> tuple[Expr | None, ...] | None:
        """Pushes pure filters into a side, unless the join pads that side's columns with NULLs.

        A filter on a padded column must see the NULLs of rows without a match, so it stays above the join. A filter that can
        raise stays, too, because below the join it would see rows that the join removes.
        """
        names = columns_of(predicate)
        if not names or not is_pure(predicate):
            return None
        filters_left, filters_right = self.sides_filtered_from_above
        if filters_left and names <= self.left.column_names:
            return predicate, None
        if filters_right and names <= self.right.column_names:
            return None, predicate
        return None

    @override
    def is_order_sensitive(self, order_matters: bool) -> bool:
        return False

    @override
    def is_duplicate_insensitive(self, duplicates_are_irrelevant: bool) -> tuple[bool, ...]:
        return duplicates_are_irrelevant, duplicates_are_irrelevant or self.kind.only_tests_right

    @override
    def label(self) -> str:
        parts = [f"{self.kind}{' null-aware' if self.null_aware else ''}"]
        if self.keys:
            parts.append(f"on=[{', '.join(map(str, self.keys))}]")
        if self.condition is not None:
            parts.append(f"condition={self.condition}")
        return f"Join: {', '.join(parts)}"

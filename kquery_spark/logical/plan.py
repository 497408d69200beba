"""The base of logical plan nodes, and how plans are walked, rewritten and printed."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa

from kquery_spark.errors import PlanError
from kquery_spark.expr import Column, Expr, columns_of
from kquery_spark.expr.properties import can_raise
from kquery_spark.run_control import check_run
from kquery_spark.types.names import spark_name

#: Taken for the rows of an input of which nothing is known.
UNKNOWN_ROWS = 1_000_000.0


@dataclass(frozen=True)
class LogicalPlan:
    """A node: its output schema has unique names, and its expressions refer to its children's names.

    Rules ask nodes what they allow: see the properties below and the methods after ``validate``. The defaults are safe for
    any node: it reads all columns, sees the order and the number of its rows, and lets no filter through.
    """

    #: Each output row is a row of one input, perhaps with other columns; rows neither meet nor count each other.
    passes_rows_on: ClassVar[bool] = False
    #: One output row for each input row, of a single input.
    preserves_rows: ClassVar[bool] = False
    #: Columns of an input come out whether or not anything reads them.
    carries_columns: ClassVar[bool] = False
    #: Calls Python functions of Spark's users: only in Spark's tasks, once for each row or group.
    calls_python: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self.validate()

    @cached_property
    def schema(self) -> pa.Schema:
        """Output columns: unique names, Spark types, nullability."""
        return self.derive_schema()

    @cached_property
    def column_names(self) -> frozenset[str]:
        """The names of the output columns."""
        return frozenset(self.schema.names)

    def derive_schema(self) -> pa.Schema:
        """Compute the output schema; called once."""
        raise NotImplementedError

    @property
    def children(self) -> tuple[LogicalPlan, ...]:
        """Input plans."""
        return ()

    def with_children(self, children: Sequence[LogicalPlan]) -> LogicalPlan:
        """The same node over other inputs."""
        if children:
            raise ValueError(f"{type(self).__name__} has no children")
        return self

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """Every expression the node holds."""
        return ()

    def map_expressions(self, rule: Callable[[Expr], Expr]) -> LogicalPlan:
        """The same node with ``rule`` applied to each top-level expression."""
        return self

    def label(self) -> str:
        """The node in one line."""
        return type(self).__name__

    def validate(self) -> None:
        """Raise PlanError where an expression reads a column no child has, or output names repeat."""
        known = frozenset[str]().union(*(child.column_names for child in self.children))
        for name in sorted(columns_of(*self.expressions) - known):
            have = ", ".join(n for child in self.children for n in child.schema.names)
            raise PlanError(f"no column {name}; the columns are {have}")
        names = self.schema.names
        if len(self.column_names) < len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise PlanError(f"column {twice} is ambiguous: the output of {type(self).__name__} has it twice")

    def narrowed(self, needed: Set[str]) -> LogicalPlan:
        """The node without those columns of its own that are not ``needed``; inputs stay as they are."""
        return self

    def required_columns(self, needed: Set[str]) -> tuple[Set[str], ...]:
        """For each input, the columns that the node reads, or passes on because they are ``needed``."""
        return tuple(child.column_names for child in self.children)

    def push_down(self, predicate: Expr) -> tuple[Expr | None, ...] | None:
        """For each input, the filter that does what one by ``predicate`` over the output would do; None: no filter there.

        None if the predicate has to be applied to the output.
        """
        return None

    def input_of(self, expr: Expr) -> tuple[LogicalPlan, Expr] | None:
        """An input, and the expression over it that ``expr`` over the output is a copy of.

        None if the node computes a column that the expression reads, or mixes inputs.
        """
        names = columns_of(expr)
        return next(((c, expr) for c in self.children if names <= c.column_names), None)

    def sees_order(self, order_is_seen: bool) -> bool:
        """Whether the order of input rows can change the result; ``order_is_seen`` says so of the order of output rows."""
        return True

    def ignores_repeats(self, repeats_are_ignored: bool) -> tuple[bool, ...]:
        """For each input, whether equal rows may as well be one; ``repeats_are_ignored`` says so of output rows."""
        return (False,) * len(self.children)

    def estimated_rows(self, input_rows: Sequence[float]) -> float:
        """Expected rows, as far as no statistics are needed for that."""
        return input_rows[0] if input_rows else UNKNOWN_ROWS

    def column(self, name: str) -> Column:
        """A reference to an output column; PlanError names the columns there are when it is unknown."""
        index = self.schema.get_field_index(name)
        if index < 0:
            raise PlanError(f"no column {name}; the columns are {', '.join(self.schema.names)}")
        field = self.schema.field(index)
        return Column(name, field.type, field.nullable)

    def __str__(self) -> str:
        return format_plan(self)


@dataclass(frozen=True)
class UnaryPlan(LogicalPlan):
    """Base of the nodes with one input, which is their field ``child``."""

    child: LogicalPlan

    @property
    def children(self) -> tuple[LogicalPlan, ...]:
        """The one input."""
        return (self.child,)

    def with_children(self, children: Sequence[LogicalPlan]) -> LogicalPlan:
        """The same node over another input."""
        (child,) = children
        return replace(self, child=child)


@dataclass(frozen=True)
class BinaryPlan(LogicalPlan):
    """Base of the nodes with two inputs, which are their fields ``left`` and ``right``."""

    left: LogicalPlan
    right: LogicalPlan

    @property
    def children(self) -> tuple[LogicalPlan, ...]:
        """Both inputs, the left one first."""
        return (self.left, self.right)

    def with_children(self, children: Sequence[LogicalPlan]) -> LogicalPlan:
        """The same node over other inputs."""
        left, right = children
        return replace(self, left=left, right=right)


def format_plan(plan: Any, indent: int = 0) -> str:
    """Any plan tree (logical or physical), one node a line, children indented below."""
    lines = ["  " * indent + plan.label()]
    lines += [format_plan(child, indent + 1) for child in plan.children]
    return "\n".join(lines)


def walk_plan(plan: LogicalPlan) -> Iterator[LogicalPlan]:
    """The node and everything below it, parents first."""
    check_run()
    yield plan
    for child in plan.children:
        yield from walk_plan(child)


def transform_plan(plan: LogicalPlan, rule: Callable[[LogicalPlan], LogicalPlan]) -> LogicalPlan:
    """Rewrite bottom-up: children first, then ``rule`` on the node with its new children."""
    check_run()
    return rule(over(plan, [transform_plan(c, rule) for c in plan.children]))


def over(plan: LogicalPlan, children: Sequence[LogicalPlan]) -> LogicalPlan:
    """The node over these children: the very node when they are its own."""
    same = all(a is b for a, b in zip(children, plan.children, strict=True))
    return plan if same else plan.with_children(children)


def rewrite_expressions(plan: LogicalPlan, rule: Callable[[Expr], Expr]) -> LogicalPlan:
    """``map_expressions`` that gives back the very node when the rule changes nothing."""
    if all(rule(e) is e for e in plan.expressions):
        return plan
    return plan.map_expressions(rule)


def fresh_name(name: str, used_names: Container[str]) -> str:
    """``name``, with a number at its end if it is used."""
    fresh, count = name, 1
    while fresh in used_names:
        count += 1
        fresh = f"{name}_{count}"
    return fresh


def names_of_columns(exprs: Iterable[Expr]) -> set[str]:
    """The names of those expressions that are columns."""
    return {e.name for e in exprs if isinstance(e, Column)}


def is_condition_on(predicate: Expr, names: Set[str]) -> bool:
    """Whether a predicate reads some of these columns and no others, and cannot raise."""
    read = columns_of(predicate)
    return bool(read) and read <= names and not can_raise(predicate)


def schema_text(schema: pa.Schema) -> str:
    """``name type, name type`` with Spark's type names."""
    return ", ".join(f"{f.name} {spark_name(f.type)}" for f in schema)

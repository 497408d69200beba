"""The base class of logical plan nodes, and functions that walk, rewrite and print plans."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pyarrow as pa

from kquery_spark.cached_property import cached_property
from kquery_spark.errors import PlanError
from kquery_spark.expr import Column, Expr, columns_of
from kquery_spark.expr.properties import can_raise
from kquery_spark.run_control import check_run
from kquery_spark.types.names import spark_name

#: The estimate for inputs without any statistics.
UNKNOWN_ROWS = 1_000_000.0


@dataclass(frozen=True)
class LogicalPlan:
    """A node of a logical plan. Output columns have unique names; expressions refer to columns of the children by name.

    Optimizer rules do not check the classes of nodes. They ask each node what it allows, through the class variables below
    and the methods from ``prune_columns`` to ``estimated_rows``. The defaults are safe for any node: it reads all columns,
    depends on the order and the number of its input rows, and lets no filter through.
    """

    #: Every output row comes from exactly one input row and depends on no other row.
    is_row_wise: ClassVar[bool] = False
    #: The node has one input and outputs exactly one row for each input row.
    preserves_rows: ClassVar[bool] = False
    #: The output contains columns of an input even if nothing above reads them.
    carries_columns: ClassVar[bool] = False
    #: The node calls Python UDFs: only in Spark's tasks, and exactly once for each row or group.
    calls_python: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self.validate()

    @cached_property
    def schema(self) -> pa.Schema:
        """The output columns: unique names, Arrow types that stand for Spark types, and nullability."""
        return self.derive_schema()

    @cached_property
    def column_names(self) -> frozenset[str]:
        """The names of the output columns."""
        return frozenset(self.schema.names)

    def derive_schema(self) -> pa.Schema:
        """Compute the output schema. ``schema`` calls this once and caches the result."""
        raise NotImplementedError

    @property
    def children(self) -> tuple[LogicalPlan, ...]:
        """Input plans."""
        return ()

    def with_children(self, children: Sequence[LogicalPlan]) -> LogicalPlan:
        """Return the same node with other inputs."""
        if children:
            raise ValueError(f"{type(self).__name__} has no children")
        return self

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """Every expression the node holds."""
        return ()

    def map_expressions(self, rule: Callable[[Expr], Expr]) -> LogicalPlan:
        """Return the same node with ``rule`` applied to each of its expressions (not to their operands)."""
        return self

    def label(self) -> str:
        """Return the node without its inputs, in one line."""
        return type(self).__name__

    def validate(self) -> None:
        """Raise PlanError if an expression reads a column that no child has, or if output names are not unique."""
        known = frozenset[str]().union(*(child.column_names for child in self.children))
        for name in sorted(columns_of(*self.expressions) - known):
            have = ", ".join(n for child in self.children for n in child.schema.names)
            raise PlanError(f"unknown column {name}; the columns are {have}")
        names = self.schema.names
        if len(self.column_names) < len(names):
            repeated = next(n for n in names if names.count(n) > 1)
            raise PlanError(
                f"column {repeated} is ambiguous: the output of {type(self).__name__} has it twice"
            )

    def prune_columns(self, needed: Set[str]) -> LogicalPlan:
        """Return the node without the columns that it computes and that are not ``needed``. Its inputs do not change."""
        return self

    def required_columns(self, needed: Set[str]) -> tuple[Set[str], ...]:
        """Return, for each input, the columns that the node reads itself or that are ``needed`` in its output."""
        return tuple(child.column_names for child in self.children)

    def push_down(self, predicate: Expr) -> tuple[Expr | None, ...] | None:
        """Return, for each input, the filter that replaces a filter by ``predicate`` above the node (None: no filter there).

        Return None if the predicate has to stay above the node. Example: ``#b > 1`` above ``Projection: #a + 1 AS b``
        becomes ``(#a + 1 > 1,)``; above a join whose left side has ``b``, it becomes ``(#b > 1, None)``.
        """
        return None

    def trace_to_input(self, expr: Expr) -> tuple[LogicalPlan, Expr] | None:
        """Return an input and an expression over it that has the same values as ``expr`` over the output.

        For ``#b`` above ``Projection: #a AS b``, it returns the projection's child and ``#a``. It returns None if the node
        computes a column that the expression reads, or if the expression reads columns of several inputs. The default is
        None unless ``carries_columns`` is set; a node that prunes its input but passes columns through overrides this.
        """
        if not self.carries_columns:
            return None
        names = columns_of(expr)
        return next(((c, expr) for c in self.children if names <= c.column_names), None)

    def is_order_sensitive(self, order_matters: bool) -> bool:
        """True if the order of the input rows can change the result of the query.

        ``order_matters``: whether the order of the node's output rows can change it.
        """
        return True

    def is_duplicate_insensitive(self, duplicates_are_irrelevant: bool) -> tuple[bool, ...]:
        """For each input, True if removing duplicate rows from it cannot change the result of the query.

        ``duplicates_are_irrelevant``: whether removing duplicates from the node's output cannot change it either.
        """
        return (False,) * len(self.children)

    def estimated_rows(self, input_rows: Sequence[float]) -> float:
        """Return the expected number of output rows. Nodes that need statistics are handled by ``optimizer.statistics``."""
        return input_rows[0] if input_rows else UNKNOWN_ROWS

    def column(self, name: str) -> Column:
        """Return a reference to an output column. Raises a PlanError that lists the columns for an unknown column."""
        index = self.schema.get_field_index(name)
        if index < 0:
            raise PlanError(f"unknown column {name}; the columns are {', '.join(self.schema.names)}")
        field = self.schema.field(index)
        return Column(name, field.type, field.nullable)

    def __str__(self) -> str:
        return format_plan(self)


@dataclass(frozen=True)
class UnaryPlan(LogicalPlan):
    """Base class of nodes with one input, the field ``child``."""

    child: LogicalPlan

    @property
    def children(self) -> tuple[LogicalPlan, ...]:
        """The only input."""
        return (self.child,)

    def derive_schema(self) -> pa.Schema:
        """The columns of the input; nodes that output other columns override this."""
        return self.child.schema

    def with_children(self, children: Sequence[LogicalPlan]) -> LogicalPlan:
        """Return the same node with another input."""
        (child,) = children
        return replace(self, child=child)


@dataclass(frozen=True)
class BinaryPlan(LogicalPlan):
    """Base class of nodes with two inputs, the fields ``left`` and ``right``."""

    left: LogicalPlan
    right: LogicalPlan

    @property
    def children(self) -> tuple[LogicalPlan, ...]:
        """Both inputs, the left one first."""
        return (self.left, self.right)

    def with_children(self, children: Sequence[LogicalPlan]) -> LogicalPlan:
        """Return the same node with other inputs."""
        left, right = children
        return replace(self, left=left, right=right)


def format_plan(plan: Any, indent: int = 0) -> str:
    """Print a plan tree (logical or physical): one node per line, children indented below their parent."""
    lines = ["  " * indent + plan.label()]
    lines += [format_plan(child, indent + 1) for child in plan.children]
    return "\n".join(lines)


def walk_plan(plan: LogicalPlan) -> Iterator[LogicalPlan]:
    """Yield the node and all nodes below it, parents first."""
    check_run()
    yield plan
    for child in plan.children:
        yield from walk_plan(child)


def transform_plan(plan: LogicalPlan, rule: Callable[[LogicalPlan], LogicalPlan]) -> LogicalPlan:
    """Rewrite bottom-up: children first, then ``rule`` on the node with its new children."""
    check_run()
    return rule(with_new_children(plan, [transform_plan(c, rule) for c in plan.children]))


def with_new_children(plan: LogicalPlan, children: Sequence[LogicalPlan]) -> LogicalPlan:
    """Return the node with these children. If they are the ones that it has, return the same object.

    Rules rely on this: a plan in which nothing changed stays the same object, and comparing it is free.
    """
    is_unchanged = all(a is b for a, b in zip(children, plan.children, strict=True))
    return plan if is_unchanged else plan.with_children(children)


def rewrite_expressions(plan: LogicalPlan, rule: Callable[[Expr], Expr]) -> LogicalPlan:
    """Call ``map_expressions``, but return the same object if the rule changes no expression."""
    if all(rule(e) is e for e in plan.expressions):
        return plan
    return plan.map_expressions(rule)


def fresh_name(name: str, used_names: Container[str]) -> str:
    """Return ``name``, or if it is used, the name with the first free number at its end: ``name_2``, ``name_3``."""
    fresh, count = name, 1
    while fresh in used_names:
        count += 1
        fresh = f"{name}_{count}"
    return fresh


def names_of_columns(exprs: Iterable[Expr]) -> set[str]:
    """Return the names of the expressions that are plain columns, and ignore the others."""
    return {e.name for e in exprs if isinstance(e, Column)}


def is_condition_on(predicate: Expr, names: Set[str]) -> bool:
    """True if the predicate reads at least one of these columns, reads no other column, and cannot raise."""
    read = columns_of(predicate)
    return bool(read) and read <= names and not can_raise(predicate)


def format_schema(schema: pa.Schema) -> str:
    """Return ``name type, name type, ...`` with Spark's type names."""
    return ", ".join(f"{f.name} {spark_name(f.type)}" for f in schema)

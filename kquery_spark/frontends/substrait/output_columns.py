"""The columns that relations output, and their names. Substrait refers to columns by position; only hints name them."""

from __future__ import annotations

from collections.abc import Sequence

from kquery_spark.errors import SubstraitError
from kquery_spark.expr import Named
from kquery_spark.frontends.substrait.messages import Message
from kquery_spark.frontends.substrait.types import depth_first_names
from kquery_spark.frontends.unique_names import unique_names
from kquery_spark.logical import LogicalPlan, Projection

MAX_COLUMNS = 10_000
"""The maximum number of columns of a relation: a short plan could otherwise multiply its columns in each relation."""


def hinted_names(message: Message, count: int) -> list[str] | None:
    """Return the names in the hint of a relation; None unless it has a distinct name for each column."""
    if not message.HasField("common") or not message.common.HasField("hint"):
        return None
    names = list(message.common.hint.output_names)
    return names if len(names) == count == len(set(names)) and all(names) else None


def output_names(message: Message, stems: Sequence[str]) -> list[str]:
    """Return unique names for the columns of a relation: those of its hint, or else the stems, numbered if repeated."""
    return hinted_names(message, len(stems)) or unique_names(stems)


def emit_mapping(message: Message, width: int) -> Sequence[int] | None:
    """Return the positions of the columns that a relation emits; None for all. width: the number of its columns."""
    if not message.HasField("common") or message.common.WhichOneof("emit_kind") != "emit":
        return None
    mapping = list(message.common.emit.output_mapping)
    if len(mapping) > MAX_COLUMNS:
        raise SubstraitError(f"a relation that emits more than {MAX_COLUMNS:,} columns is not supported")
    for position in mapping:
        if not 0 <= position < width:
            raise SubstraitError(f"a relation emits column {position} of {width}")
    return mapping


def apply_emit(plan: LogicalPlan, message: Message) -> LogicalPlan:
    """Return the plan of a relation with only the columns that the relation emits, in the order of its emit mapping."""
    mapping = emit_mapping(message, len(plan.schema))
    if mapping is None:
        return plan
    columns = plan.schema.names
    names = [columns[position] for position in mapping]
    aliases = output_names(message, names)
    return Projection(plan, tuple(Named(plan.column(n), a) for n, a in zip(names, aliases, strict=True)))


def root_names(plan: LogicalPlan, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the result's columns from the names of a plan's root.

    The root has names for nested fields, too, depth first after the name of their column. They must be those of the types:
    columns can be renamed, fields within them cannot.
    """
    remaining = list(names)
    columns = []
    for field in plan.schema:
        inner = depth_first_names(field)
        if len(remaining) < len(inner):
            raise SubstraitError("the plan has fewer names than columns")
        if remaining[1 : len(inner)] != inner[1:]:
            raise SubstraitError(f"the plan gives other names to the fields within column {remaining[0]}")
        columns.append(remaining[0])
        del remaining[: len(inner)]
    if remaining:
        raise SubstraitError("the plan has more names than columns")
    return tuple(columns)

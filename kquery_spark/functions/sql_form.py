"""Describes how a function is written: its names, SQL operators and other syntax, and its DataFrame calls."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kquery_spark.functions.call_form import ONE_COLUMN, CallForm, Spellings


class Logic(Enum):
    """The meaning of a logical operator, for rules that know its truth table."""

    AND = "AND"
    OR = "OR"
    NOT = "NOT"
    IS_NULL = "IS NULL"
    IS_NOT_NULL = "IS NOT NULL"
    EQUAL = "="
    EQUAL_NULL_SAFE = "<=>"
    NOT_EQUAL = "<>"
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="


@dataclass(frozen=True)
class Operator:
    """Properties of a SQL operator. Other operators are referred to by the names of their entries.

    symbol: what plans print between or before the operands. spellings: other spellings in SQL.
    arithmetic: True if it computes a number from two numbers. associative: True if constants in a chain of it can be
    combined. logic: its meaning, if it is a logical operator.
    flipped: the comparison with swapped sides (``<`` for ``>``). equality: True for a comparison that is true for equal
    values only. opposite: the condition that is true where this one is false.
    """

    symbol: str = ""
    spellings: tuple[str, ...] = ()
    arithmetic: bool = False
    associative: bool = False
    logic: Logic | None = None
    flipped: str = ""
    equality: bool = False
    opposite: str = ""

    @property
    def connective(self) -> bool:
        """True for AND and OR, whose value may follow from one side alone."""
        return self.logic in (Logic.AND, Logic.OR)


NO_OPERATOR = Operator()


@dataclass(frozen=True, kw_only=True)
class SqlForm:
    """How SQL and DataFrames write a call.

    aliases: other SQL names. internal: True if SQL has no function with this name, only an operator, syntax, or Spark's
    optimizer produces it.
    calls: how calls are written in DataFrames and shown in column names. alias_calls: aliases that differ from that.
    operator: the SQL operator that it implements.
    date_fields, interval_fields: fields for which ``EXTRACT(field FROM x)`` is this function, for dates and timestamps, and
    for day-time intervals.
    unit_words: words that are this function if a unit comes first: ``DATEADD(DAY, 1, x)``.
    makes_months: True if it makes a year-month interval from numbers.
    reads_field: True if it reads a field of a struct, or of every struct in an array. Spark names the column after the
    field.
    """

    aliases: tuple[str, ...] = ()
    internal: bool = False
    calls: CallForm = ONE_COLUMN
    alias_calls: Spellings = ()
    operator: Operator = NO_OPERATOR
    date_fields: tuple[str, ...] = ()
    interval_fields: tuple[str, ...] = ()
    unit_words: tuple[str, ...] = ()
    makes_months: bool = False
    reads_field: bool = False

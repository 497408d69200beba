"""Rules for when the result of a function is NULL, depending on its arguments."""

from __future__ import annotations

from enum import Enum


class Nullability(Enum):
    """When the result of a call is NULL.

    The rules that name arguments say when the result can be NULL, apart from errors that a mode turns into NULL.
    ANY_ARGUMENT is exact: if any argument is NULL, the result is NULL, and optimizer rules rely on this. The other rules are
    upper bounds. For example, ``locate`` has FIRST_TWO_ARGUMENTS, but ``locate(NULL, NULL, NULL)`` is 0, not NULL.
    """

    ANY_ARGUMENT = "any argument is NULL"
    SOME_ARGUMENT = "an argument that decides the result is NULL; which one it is depends on the row"
    ALL_ARGUMENTS = "all arguments are NULL"
    FIRST_ARGUMENT = "the first argument is NULL"
    FIRST_TWO_ARGUMENTS = "one of the first two arguments is NULL"
    ALL_BUT_FIRST = "an argument after the first is NULL"
    STRUCT_OR_FIELD = "the struct or its field is NULL"
    ARGUMENT_OR_ELEMENT = "an argument or an element of the array is NULL"
    ARGUMENT_OR_BODY = "an argument or the value of the lambda is NULL"
    OTHER_REASONS = "also for reasons that the arguments' NULLs do not show"
    NEVER = "never"

"""Turns errors of a function into NULL if the call is in TRY mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kquery_spark.errors import ExecutionError
from kquery_spark.functions.registry import CallContext, EvalMode


def null_on_error_if_try(fn: Callable[..., Any], context: CallContext) -> Callable[..., Any]:
    """Return ``fn``; in TRY mode, wrapped so that it returns None instead of raising an ExecutionError."""
    if context.mode is not EvalMode.TRY:
        return fn

    def attempt(*args: Any) -> Any:
        try:
            return fn(*args)
        except ExecutionError:
            return None

    return attempt

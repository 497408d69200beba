"""Declines queries of an ExecutionContext or open plan that Spark's session would answer differently."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from kquery_spark.errors import Unsupported
from kquery_spark.expr import AggregateCall, Call, Cast, Expr, HigherOrder, Literal, WindowCall, walk
from kquery_spark.expr.constants import recorded_constants
from kquery_spark.frontends.catalyst.versions import CAST, LOCAL_SETTINGS, all_changed_calls
from kquery_spark.functions.registry import EvalMode
from kquery_spark.logical import LogicalPlan
from kquery_spark.logical.subqueries import expressions_with_subqueries
from kquery_spark.sources.file_format import Format
from kquery_spark.spark_bridge.session.bridge import Bridge
from kquery_spark.spark_bridge.session.settings import (
    SessionSettings,
    unexpected_for_paths,
    unexpected_for_sql,
)


def check_session(bridge: Bridge, settings: SessionSettings, plan: LogicalPlan) -> None:
    """Raise Unsupported if a plan's result would differ under the session's settings or in its version of Spark.

    The check covers the whole plan; for an open plan, this includes the imported plan to which it is applied.
    """
    unexpected = unexpected_for_sql(bridge.conf, bridge.jvm) | {
        name: value for name, value in settings.unexpected().items() if not name.startswith(LOCAL_SETTINGS)
    }
    for name, value in unexpected.items():
        raise Unsupported(f"the engine does not follow the setting {name}={value}")
    _check_calls(settings, expressions_with_subqueries(plan))


@contextmanager
def checked_constants(settings: Callable[[], SessionSettings]) -> Iterator[None]:
    """Raise Unsupported if the analysis in this block evaluates a constant that Spark's session would evaluate differently.

    ``check_session`` cannot find such constants, because the analyzed plan has only their values, for example in a row of
    VALUES. Unsupported also replaces an error of the analysis, which may depend on the constant. settings: reads the
    session's settings; it is called only if there are constants.
    """
    with recorded_constants() as constants:
        try:
            yield
        except Exception:
            if constants:
                _check_calls(settings(), constants)
            raise
        if constants:
            _check_calls(settings(), constants)


def check_files(bridge: Bridge, settings: SessionSettings, file_format: Format, are_paths: bool) -> None:
    """Raise Unsupported if Spark's session reads files of a format differently than a context does.

    are_paths: whether the files are read by path, so that their columns come from the files and directories. False for a
    table format, whose metadata describe the columns.
    """
    unexpected = settings.unexpected(*file_format.settings.prefixes)
    if are_paths:
        unexpected |= unexpected_for_paths(bridge.conf, bridge.jvm, file_format)
    for name, value in unexpected.items():
        raise Unsupported(f"{file_format.title} files are not supported while {name} is {value}")


def _check_calls(settings: SessionSettings, expressions: Iterable[Expr]) -> None:
    changed = all_changed_calls(settings)
    if not changed:
        return
    for top in expressions:
        for expr in _with_lambda_bodies(top):
            function, args, raises_errors = _call_signature(expr)
            for change in changed.get(function, ()):
                if change.applies_to(args, raises_errors):
                    raise Unsupported(change.reason)


def _with_lambda_bodies(expr: Expr) -> Iterator[Expr]:
    for part in walk(expr):
        yield part
        if isinstance(part, HigherOrder):
            yield from _with_lambda_bodies(part.body)


def _call_signature(expr: Expr) -> tuple[str, Sequence[Expr], bool]:
    """Return a call's function name, arguments, and whether it raises errors; an empty name for other expressions."""
    match expr:
        case Call() | AggregateCall() | WindowCall():
            return expr.function, expr.args, expr.mode is EvalMode.ANSI
        case Cast():
            return CAST, (expr.child, Literal(None, expr.to)), expr.mode is EvalMode.ANSI
    return "", (), False

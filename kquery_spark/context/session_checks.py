"""Declines queries of an ExecutionContext or open plan that Spark's session would answer differently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kquery_spark.errors import Unsupported
from kquery_spark.expr import AggregateCall, Call, Cast, Expr, HigherOrder, Literal, WindowCall, walk
from kquery_spark.frontends.catalyst.versions import CAST, LOCAL_SETTINGS, all_changed_calls
from kquery_spark.functions.registry import EvalMode
from kquery_spark.logical import LogicalPlan
from kquery_spark.logical.subqueries import expressions_with_subqueries
from kquery_spark.spark_bridge.session.bridge import Bridge
from kquery_spark.spark_bridge.session.settings import SessionSettings, unexpected_for_sql


def check_session(bridge: Bridge, settings: SessionSettings, plan: LogicalPlan) -> None:
    """Raise Unsupported if a plan's result would differ under the session's settings or in its version of Spark.

    For an open plan, the whole plan is checked, also the imported part below it.
    """
    unexpected = unexpected_for_sql(bridge.conf, bridge.jvm) | {
        name: value for name, value in settings.unexpected().items() if not name.startswith(LOCAL_SETTINGS)
    }
    for name, value in unexpected.items():
        raise Unsupported(f"the engine does not follow the setting {name}={value}")
    changed = all_changed_calls(settings)
    if changed:
        for expr in _expressions(plan):
            function, args, raises_errors = _call_signature(expr)
            for change in changed.get(function, ()):
                if change.applies_to(args, raises_errors):
                    raise Unsupported(change.reason)


def _expressions(plan: LogicalPlan) -> Iterator[Expr]:
    for top in expressions_with_subqueries(plan):
        yield from _with_lambda_bodies(top)


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

"""Declines queries of an ExecutionContext or open plan that Spark's session would answer differently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from kquery_spark.errors import Unsupported
from kquery_spark.expr import AggregateCall, Call, Cast, Expr, Literal, walk
from kquery_spark.frontends.catalyst.versions import CAST, LOCAL_SETTINGS, all_changed_calls
from kquery_spark.functions.registry import EvalMode
from kquery_spark.logical import LogicalPlan
from kquery_spark.logical.subqueries import walk_with_subqueries
from kquery_spark.spark_bridge.session.bridge import Bridge
from kquery_spark.spark_bridge.session.settings import SessionSettings, session_values

# Settings that change what the text of a query means, each with its default, which is the only value that the engine
# supports. An imported plan does not need them, because Spark has analyzed its query. In Spark, NULL IN () follows ANSI mode
# by default.
_MEANING: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.ansi.doubleQuotedIdentifiers": "false",
        "spark.sql.groupByAliases": "true",
        "spark.sql.groupByOrdinal": "true",
        "spark.sql.legacy.castComplexTypesToString.enabled": "false",
        "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
        "spark.sql.legacy.ctePrecedencePolicy": "corrected",
        "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
        "spark.sql.legacy.followThreeValuedLogicInArrayExists": "true",
        "spark.sql.legacy.integerGroupingId": "false",
        "spark.sql.legacy.interval.enabled": "false",
        "spark.sql.legacy.literal.pickMinimumPrecision": "true",
        "spark.sql.legacy.negativeIndexInArrayInsert": "false",
        "spark.sql.legacy.nullInEmptyListBehavior": "",
        "spark.sql.legacy.setopsPrecedence.enabled": "false",
        "spark.sql.legacy.sizeOfNull": "true",
        "spark.sql.legacy.statisticalAggregate": "false",
        "spark.sql.orderByOrdinal": "true",
        "spark.sql.parser.escapedStringLiterals": "false",
        "spark.sql.parser.quotedRegexColumnNames": "false",
        "spark.sql.timestampType": "timestamp_ltz",
    }
)
_UNSET = "<undefined>"


def check_session(bridge: Bridge, settings: SessionSettings, plan: LogicalPlan) -> None:
    """Raise Unsupported if the session's settings, or its version of Spark, give a plan of the engine another result."""
    names = tuple(_MEANING)
    for name, value in zip(names, session_values(bridge.conf, bridge.jvm, names, unset=_UNSET), strict=True):
        if value not in (None, _UNSET) and value.strip().lower() != _MEANING[name]:
            raise Unsupported(f"the engine does not follow the setting {name}={value}")
    for name, value in settings.unexpected().items():
        if not name.startswith(LOCAL_SETTINGS):
            raise Unsupported(f"the engine does not follow the setting {name}={value}")
    changed = all_changed_calls(settings)
    if changed:
        for expr in _expressions(plan):
            function, args, raises_errors = _call(expr)
            for change in changed.get(function, ()):
                if change.applies_to(args, raises_errors):
                    raise Unsupported(change.reason)


def _expressions(plan: LogicalPlan) -> Iterator[Expr]:
    for node in walk_with_subqueries(plan):
        for top in node.expressions:
            yield from walk(top)


def _call(expr: Expr) -> tuple[str, Sequence[Expr], bool]:
    """Return the function of a call, its arguments, and whether it raises errors; an empty name for other expressions."""
    match expr:
        case Call():
            return expr.function, expr.args, expr.mode is EvalMode.ANSI
        case AggregateCall():
            return expr.function, expr.args, expr.mode is EvalMode.ANSI
        case Cast():
            return CAST, (expr.child, Literal(None, expr.to)), expr.mode is EvalMode.ANSI
    return "", (), False

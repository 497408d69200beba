"""Declines queries of an ExecutionContext or open plan that Spark's session would answer differently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from kquery_spark.errors import Unsupported
from kquery_spark.expr import AggregateCall, Call, Cast, Expr, HigherOrder, Literal, WindowCall, walk
from kquery_spark.frontends.catalyst.versions import CAST, LOCAL_SETTINGS, all_changed_calls
from kquery_spark.functions.registry import EvalMode
from kquery_spark.logical import LogicalPlan
from kquery_spark.logical.subqueries import expressions_with_subqueries
from kquery_spark.spark_bridge.session.bridge import Bridge
from kquery_spark.spark_bridge.session.settings import SessionSettings, session_values

# Settings that change how Spark parses or analyzes a query. The engine supports only the default value of
# each. Queries imported from Spark need no such check, because Spark has already analyzed them. The empty
# value means that the setting must be unset: then NULL IN () depends on ANSI mode, as in the engine.
_SUPPORTED_VALUES: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.ansi.doubleQuotedIdentifiers": "false",
        "spark.sql.groupByAliases": "true",
        "spark.sql.groupByOrdinal": "true",
        "spark.sql.legacy.allowNullComparisonResultInArraySort": "false",
        "spark.sql.legacy.castComplexTypesToString.enabled": "false",
        "spark.sql.legacy.codingErrorAction": "false",
        "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
        "spark.sql.legacy.createEmptyCollectionUsingStringType": "false",
        "spark.sql.legacy.ctePrecedencePolicy": "corrected",
        "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "false",
        "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
        "spark.sql.legacy.followThreeValuedLogicInArrayExists": "true",
        "spark.sql.legacy.groupingIdWithAppendedUserGroupBy": "false",
        "spark.sql.legacy.integerGroupingId": "false",
        "spark.sql.legacy.interval.enabled": "false",
        "spark.sql.legacy.javaCharsets": "false",
        "spark.sql.legacy.literal.pickMinimumPrecision": "true",
        "spark.sql.legacy.negativeIndexInArrayInsert": "false",
        "spark.sql.legacy.nullInEmptyListBehavior": "",
        "spark.sql.legacy.parser.havingWithoutGroupByAsWhere": "false",
        "spark.sql.legacy.percentileDiscCalculation": "false",
        "spark.sql.legacy.scalarSubqueryCountBugBehavior": "false",
        "spark.sql.legacy.setopsPrecedence.enabled": "false",
        "spark.sql.legacy.sizeOfNull": "true",
        "spark.sql.legacy.statisticalAggregate": "false",
        "spark.sql.legacy.truncateForEmptyRegexSplit": "false",
        "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "false",
        "spark.sql.orderByOrdinal": "true",
        "spark.sql.parser.escapedStringLiterals": "false",
        "spark.sql.parser.quotedRegexColumnNames": "false",
        "spark.sql.timestampType": "timestamp_ltz",
    }
)
# The only default that SQLConf.getConfString does not parse as a value of the setting (ConfigEntry.UNDEFINED).
_UNSET = "<undefined>"


def check_session(bridge: Bridge, settings: SessionSettings, plan: LogicalPlan) -> None:
    """Raise Unsupported if a plan's result would differ under the session's settings or in its version of Spark."""
    names = tuple(_SUPPORTED_VALUES)
    for name, value in zip(names, session_values(bridge.conf, bridge.jvm, names, unset=_UNSET), strict=True):
        if value != _UNSET and value.strip().lower() != _SUPPORTED_VALUES[name]:
            raise Unsupported(f"the engine does not follow the setting {name}={value}")
    for name, value in settings.unexpected().items():
        if not name.startswith(LOCAL_SETTINGS):
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

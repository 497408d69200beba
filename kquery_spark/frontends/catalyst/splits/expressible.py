"""Decides whether the engine can evaluate an expression, from the expression alone, before the plan is imported."""

from __future__ import annotations

from typing_extensions import override

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr import AggregateCall, Column, Expr, Named
from kquery_spark.expr.properties import can_raise
from kquery_spark.frontends.catalyst.expressions import Translator
from kquery_spark.frontends.catalyst.expressions.translator import AggregateSink
from kquery_spark.frontends.catalyst.plans.projections import REDUNDANT_FILTERS
from kquery_spark.frontends.catalyst.versions import changed_calls, declined_classes
from kquery_spark.spark_bridge.plan.plan_facts import Facts
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.spark_bridge.session.settings import SessionSettings
from kquery_spark.types.spark_json import arrow_type


class _AnyAggregate(AggregateSink):
    """A sink that accepts all aggregate calls that the engine supports."""

    @override
    def column(self, call: AggregateCall) -> Column:
        return Named(call, "aggregated").column


class Expressible:
    """Decides which expressions of one plan the engine can evaluate; it assumes that it can evaluate subqueries."""

    def __init__(self, facts: Facts, settings: SessionSettings) -> None:
        self._facts = facts
        self._settings = settings
        self._declined_classes = declined_classes(settings)
        self._changed = changed_calls(settings)

    def declines(self, expression: CatalystNode) -> bool:
        """Return whether the expression, which may contain aggregate functions, falls back to Spark."""
        return not _is_decided_later(expression) and self._translated(expression) is None

    def is_infallible(self, expression: CatalystNode) -> bool:
        """Return whether the engine can evaluate the expression for any row without raising an error."""
        if expression.cls in REDUNDANT_FILTERS:
            return True
        expr = None if _is_decided_later(expression) else self._translated(expression)
        return expr is not None and not can_raise(expr)

    def _translated(self, expression: CatalystNode) -> Expr | None:
        """Translate an expression, with columns that are named by their ids; None if it falls back to Spark."""
        if any(part.cls in self._declined_classes for part in expression.walk_all()):
            return None
        try:
            arguments = self._translator(expression, None, None)
            return self._translator(expression, _AnyAggregate(), arguments)(expression)
        except (Unsupported, PlanError, RecursionError):
            return None

    def _translator(
        self, expression: CatalystNode, aggregates: AggregateSink | None, arguments: Translator | None
    ) -> Translator:
        zone = self._settings.time_zone
        columns: dict[int, Column | None] = {}
        for part in attributes(expression):
            name, dtype = str(part["exprId"]), arrow_type(part["dataType"], zone)
            columns[part["exprId"]] = Column(name, dtype, bool(part["nullable"]))
        return Translator(columns, self._facts, zone, None, aggregates, arguments, None, self._changed)


def attributes(*expressions: CatalystNode) -> list[CatalystNode]:
    """The columns that expressions read, without duplicates."""
    by_id = {
        part["exprId"]: part
        for expression in expressions
        for part in expression.walk()
        if part.cls == "AttributeReference"
    }
    return list(by_id.values())


def _is_decided_later(expression: CatalystNode) -> bool:
    """Return whether the answer is irrelevant, or depends on a subquery's plan and so is known only after the import."""
    return expression.cls in REDUNDANT_FILTERS or any(
        part.is_plan or part.cls == "ScalarSubquery" for part in expression.walk_all()
    )

"""Translates Catalyst expressions to engine expressions over the columns of one imported subtree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr import AggregateCall, Call, Column, Expr, Literal
from kquery_spark.frontends.catalyst.expressions.parameters import check_parameters
from kquery_spark.frontends.catalyst.support import Table
from kquery_spark.frontends.catalyst.versions import ChangedCall
from kquery_spark.functions.aggregate_registry import AggregateFunction
from kquery_spark.functions.math.overflow import mode_for_types
from kquery_spark.functions.registry import EvalMode, Function, for_catalyst
from kquery_spark.kernels.compiled import CompiledLoops
from kquery_spark.spark_bridge.plan.plan_facts import Facts
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.spark_bridge.session.settings import PRECISION_LOSS_SETTING
from kquery_spark.types import names as t
from kquery_spark.types.spark_json import arrow_type

# Fields that are not arguments. A function with another such field must have a handler of its own.
_MODE_FIELDS = ("evalMode", "evalContext")
_FLAG_FIELDS = ("failOnError", "ansiEnabled")
_ZONE_FIELD = "timeZoneId"
_COMMON_FIELDS = frozenset({*_MODE_FIELDS, *_FLAG_FIELDS, _ZONE_FIELD})
# Their type is timestamp in the session's time zone, which does not follow from the arguments.
_MAKES_TIMESTAMPS = frozenset({"SecondsToTimestamp", "MillisToTimestamp", "MicrosToTimestamp"})


class Subqueries(Protocol):
    """Collects the scalar subqueries of a node's expressions."""

    def scalar(self, node: CatalystNode) -> Column:
        """The column for the value of a ScalarSubquery."""

    def field(self, node: CatalystNode) -> Column | None:
        """The column for a field of a merged subquery; None for other fields."""


class AggregateSink(Protocol):
    """Collects the aggregate functions of an Aggregate's results."""

    def column(self, call: AggregateCall) -> Column:
        """The column for the value of an aggregate call."""

    def python_column(self, node: CatalystNode) -> Column:
        """The column for the value of an AggregateExpression of a Python function."""
        raise Unsupported("a Python aggregate function together with other aggregates is not supported")


class WindowSink(Protocol):
    """Collects the window functions of a Window."""

    def column(self, node: CatalystNode) -> Column:
        """The column for the value of a WindowExpression."""

    def sum_of_unscaled_values(self, node: CatalystNode) -> Column | None:
        """The column of the decimal sum if a WindowExpression adds up unscaled values; otherwise None."""
        return None


class Translator:
    """Translates the expressions of one plan node.

    columns: the input columns by expression id; None if two inputs have the same id. subqueries, aggregates, windows: sinks
    for such expressions; None if they are not allowed. arguments: translates the arguments of aggregates. changed: functions
    whose results may differ in this version of Spark. last_key_wins: True if the last of duplicate map keys wins; otherwise
    they are an error.
    """

    def __init__(
        self,
        columns: Mapping[int, Column | None],
        facts: Facts,
        time_zone: str,
        subqueries: Subqueries | None = None,
        aggregates: AggregateSink | None = None,
        arguments: Translator | None = None,
        windows: WindowSink | None = None,
        changed: Mapping[str, tuple[ChangedCall, ...]] | None = None,
        last_key_wins: bool = False,
    ) -> None:
        self.columns = columns
        self.facts = facts
        self.time_zone = time_zone
        self.subqueries = subqueries
        self.aggregates = aggregates
        self.arguments = arguments
        self.windows = windows
        self.changed = changed or {}
        self.last_key_wins = last_key_wins
        self.variables: dict[int, Column] = {}

    @property
    def for_arguments(self) -> Translator:
        """The translator for the arguments of aggregate functions, which are over the aggregate's input."""
        return self if self.arguments is None else self.arguments

    def __call__(self, node: CatalystNode) -> Expr:
        """Translate an expression, which must not be a variant; raises Unsupported with the fallback reason."""
        expr = self.with_variants(node)
        if t.is_nested(expr.dtype) and t.has_variants(expr.dtype):
            raise Unsupported("variants are supported by variant_get, casts, IS NULL, and COUNT only")
        return expr

    def with_variants(self, node: CatalystNode) -> Expr:
        """Translate an expression that may be a variant."""
        entry = EXPRESSIONS.entries.get(node.cls)
        try:
            if entry is not None:
                if entry.handler is None:
                    raise Unsupported(entry.note)
                return entry.handler(node, self)
            function = for_catalyst(node.cls)
            if function is not None:
                return self.call(function, node)
        except PlanError as error:
            raise Unsupported(f"{node.cls}: {error}") from error
        raise Unsupported(f"the expression {node.cls.rsplit('.', 1)[-1]} is not supported")

    def call(self, function: Function, node: CatalystNode) -> Expr:
        """Build a call of a registered function; its arguments are the node's children in their order."""
        if not function.deterministic:
            raise Unsupported(f"{function.name} is nondeterministic, so it falls back to Spark")
        read = self.with_variants if function.takes_variants else self
        args = [read(child) for child in node.children]
        check_loops(function)
        self.check_version(node, function.name, args)
        self.check_fields(node, *check_parameters(node, function.parameters, node.cls))
        self._check_precision(node, function, args)
        for position in function.zones:
            self._follow_zone(args[position])
        mode = self.mode(node, function, args)
        dtype = None
        if node.cls in _MAKES_TIMESTAMPS:
            function.result([a.dtype for a in args])  # a given type is not checked against the arguments'
            dtype = t.timestamp(self.time_zone)
        return Call.of(function.name, *args, mode=mode, tz=self.zone(node), dtype=dtype)

    def bind(self, parameters: Sequence[CatalystNode], columns: Sequence[Column]) -> Sequence[Column]:
        """Map the parameters of a lambda to columns that its body can read."""
        self.variables.update((p["exprId"], column) for p, column in zip(parameters, columns, strict=False))
        return columns

    def check_version(self, node: CatalystNode, function: str, args: Sequence[Expr]) -> None:
        """Raise Unsupported for a call whose result differs in the session's version of Spark."""
        for change in self.changed.get(function, ()):
            if change.applies_to(args, raises_errors=any(node.fields.get(flag) for flag in _FLAG_FIELDS)):
                raise Unsupported(change.reason)

    def check_fields(self, node: CatalystNode, *known: str) -> None:
        """Raise Unsupported unless all fields, except known and common ones, refer to the children in order."""
        indexes: list[Any] = []
        for name, value in node.fields.items():
            if name in known or name in _COMMON_FIELDS:
                continue
            if _repeats(value, node.children[len(indexes) :]):
                value = len(indexes)
            indexes.extend(value if type(value) is list else (value,))
        # Equal children all have the index of the first one; a number that is not an index makes the count too large.
        if len(indexes) != len(node.children) or any(
            type(index) is not int or not 0 <= index <= position for position, index in enumerate(indexes)
        ):
            raise Unsupported(f"{node.cls} has a parameter that the engine does not know")

    def mode(self, node: CatalystNode, function: Function, args: list[Expr]) -> EvalMode:
        """The evaluation mode of a call, read from the JVM only if it can affect the result."""
        if function.parameters.builds_map:
            return EvalMode.LEGACY if self.last_key_wins else EvalMode.ANSI
        return mode_for_types([a.dtype for a in args], self._session_mode(node, function, args))

    def _session_mode(self, node: CatalystNode, function: Function, args: list[Expr]) -> EvalMode:
        for flag in _FLAG_FIELDS:
            if flag in node.fields:
                if node[flag]:
                    return EvalMode.ANSI
                return EvalMode.TRY if function.parameters.null_if_not_failing else EvalMode.LEGACY
        if not any(name in node.fields for name in _MODE_FIELDS):
            return EvalMode.ANSI
        # for floats and doubles, only divisions can raise an error
        is_infallible = function.operator.arithmetic and not function.stops_at_zero
        if is_infallible and args and t.is_fractional(args[0].dtype):
            return EvalMode.ANSI
        return self.eval_mode(node)

    def eval_mode(self, node: CatalystNode) -> EvalMode:
        """The evaluation mode, which the JSON does not contain."""
        return EvalMode[self.facts.eval_mode(node)]

    def _check_precision(self, node: CatalystNode, function: Function, args: Sequence[Expr]) -> None:
        """Raise Unsupported if a decimal result has an unexpected type, because a setting had another value at planning."""
        is_decimal = function.operator.arithmetic and any(t.is_decimal(a.dtype) for a in args)
        keeps_context = any(name in node.fields for name in _MODE_FIELDS)
        if is_decimal and keeps_context and not self.facts.allows_precision_loss(node):
            raise Unsupported(
                f"arithmetic of decimals that was made while {PRECISION_LOSS_SETTING} was false is not supported"
            )

    def zone(self, node: CatalystNode) -> str:
        """The time zone an expression computes in."""
        zone = node.fields.get(_ZONE_FIELD)
        if zone is None or zone == self.time_zone:
            return self.time_zone
        self.facts.follow_zone(str(zone))
        return str(zone)

    def _follow_zone(self, argument: Expr) -> None:
        if isinstance(argument, Literal) and argument.value is not None:
            self.facts.follow_zone(argument.value)

    def type(self, spark: Any) -> pa.DataType:
        """The Arrow type of a Spark type in JSON."""
        if type(spark) is not str:
            return arrow_type(spark, self.time_zone)
        key = (spark, self.time_zone)
        dtype = _TYPES.get(key)
        if dtype is None:
            dtype = _TYPES[key] = arrow_type(spark, self.time_zone)
        return dtype


def check_loops(function: Function | AggregateFunction) -> None:
    """Raise Unsupported for a function whose compiled loops are not available yet; starts compiling in the background."""
    if function.loops is not None:
        require_loops(function.loops, function.calls.name_of(function.name))


def require_loops(loops: CompiledLoops, what: str) -> None:
    """Raise Unsupported if loops are not compiled yet. what: the feature that needs them."""
    if not loops.are_ready_or_start_compiling():
        raise Unsupported(f"the loops that {what} needs {loops.not_ready_clause}")


def _repeats(value: Any, rest: Sequence[CatalystNode]) -> bool:
    """Return whether a field repeats the tree of the next child, as in the JSON of optional arguments."""
    if type(value) is not list or not value or type(value[0]) is not dict or not rest:
        return False
    return bool(value[0].get("class") == rest[0].qualified)


_TYPES: dict[tuple[str, str], pa.DataType] = {}

Handler = Callable[[CatalystNode, Translator], Expr]
EXPRESSIONS: Table[Handler] = Table()

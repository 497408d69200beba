"""Translates Catalyst's aggregate functions to entries of the registry and their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Case, Cast, Expr, Literal, columns_of
from kquery_spark.frontends.catalyst.expressions.parameters import check_parameters
from kquery_spark.frontends.catalyst.expressions.translator import Translator, check_loops
from kquery_spark.functions.aggregate.hyperloglog import precision_for_error
from kquery_spark.functions.aggregate.listagg import directions
from kquery_spark.functions.aggregate_registry import (
    AggregateFunction,
    aggregate_for_catalyst,
    aggregate_function,
)
from kquery_spark.functions.registry import EvalMode
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.types import names as t

#: Fields with the position of an aggregate's state in Spark's buffers, which do not affect its value.
IGNORED_FIELDS = ("mutableAggBufferOffset", "inputAggBufferOffset")

REASONS = {
    "ApproximatePercentile": "the estimate of approx_percentile depends on Spark's partitions and the order of their rows",
    "HistogramNumeric": "the bins of histogram_numeric depend on Spark's partitions and the order of their rows",
    **dict.fromkeys(
        ("CountMinSketchAgg", "HllSketchAgg", "ThetaSketchAgg", "ApproxTopK"), "sketches are not supported"
    ),
    "BloomFilterAggregate": "Bloom filters are not supported",
    "ScalaUDAF": "a Scala or Java aggregate function is not supported",
    "ScalaAggregator": "a Scala or Java aggregate function is not supported",
}

#: The conditions for classes that the engine supports only partly.
CONDITIONS = {
    "Mode": "with a direction: mode(x, true) or WITHIN GROUP",
    "PandasCovar": "ddof of 0 or 1",
    "PandasStddev": "ddof of 0 or 1",
    "PandasVariance": "ddof of 0 or 1",
    "PivotFirst": "values that are not floating-point",
    "PythonUDAF": "not of year-month intervals, and without other aggregates",
}

# Functions whose values depend on the order of rows. They fall back if the query sorts their input.
_ORDERED = frozenset({"First", "Last", "CollectList", "ListAgg", "MaxMinByK"})


@dataclass(frozen=True)
class TranslatedAggregate:
    """A translated aggregate function."""

    entry: AggregateFunction
    args: tuple[Expr, ...]
    mode: EvalMode


def known_aggregate(cls: str) -> AggregateFunction:
    """The registry's entry for a Catalyst class."""
    entry = aggregate_for_catalyst(cls)
    if entry is None:
        raise Unsupported(
            REASONS.get(cls) or f"the aggregate function {cls.rsplit('.', 1)[-1]} is not supported"
        )
    return entry


def takes_rows_in_order(function: CatalystNode) -> bool:
    """Return whether an aggregate function's value depends on the order of its rows."""
    return function.cls in _ORDERED and not function.fields.get("orderExpressions")


def aggregated(function: CatalystNode, translate: Translator) -> TranslatedAggregate:
    """The registry's entry for an aggregate function, its arguments and its mode."""
    cls = function.cls
    entry = known_aggregate(cls)
    fixed = check_parameters(function, entry.parameters, entry.name)
    variants = tuple(field for field, _, _ in entry.variants)
    translate.check_fields(function, *IGNORED_FIELDS, *fixed, *variants, *_READ_FIELDS.get(cls, ()))
    for field, value, name in entry.variants:
        if function.fields.get(field) == value:
            entry = aggregate_function(name)
    check_loops(entry)
    handler = _ARGUMENTS.get(cls)
    if handler is None:
        args = tuple(translate(child) for child in function.children)
    else:
        entry, args = handler(function, entry, translate)
    translate.check_version(function, entry.name, args)
    mode = EvalMode.ANSI
    if cls in ("Sum", "Average") and not t.is_fractional(args[0].dtype):
        mode = translate.eval_mode(function)
        if mode is EvalMode.TRY and t.is_interval(args[0].dtype):
            raise Unsupported(f"try_{entry.name} of intervals is not supported")
    return TranslatedAggregate(entry, args, mode)


_Arguments = tuple[AggregateFunction, tuple[Expr, ...]]
_Handler = Callable[[CatalystNode, AggregateFunction, Translator], _Arguments]


def _count(function: CatalystNode, entry: AggregateFunction, translate: Translator) -> _Arguments:
    args = tuple(_countable(translate.with_variants(child)) for child in function.children)
    if all(isinstance(a, Literal) and a.value is not None for a in args):
        args = ()
    return entry, args


def _countable(expr: Expr) -> Expr:
    """Return an expression that is NULL exactly if ``expr`` is; for variants, which COUNT cannot read, a Boolean."""
    if expr.dtype != t.VARIANT:
        return expr
    return Case(((Call.of("isnotnull", expr), Literal(True, t.BOOL)),))


def _approx_count_distinct(
    function: CatalystNode, entry: AggregateFunction, translate: Translator
) -> _Arguments:
    error = float(function["relativeSD"])
    precision_for_error(error)
    return entry, (translate(function.children[0]), Literal(error, t.DOUBLE))


def _percentile(function: CatalystNode, entry: AggregateFunction, translate: Translator) -> _Arguments:
    """Translate PERCENTILE: values as doubles, and constant shares; with a frequency other than 1 it is another function."""
    value, share, *weights = (translate(child) for child in function.children)
    if columns_of(share):
        raise Unsupported("percentile with a percentage that varies is not supported")
    args = (_double(value, translate), share)
    for weight in weights:
        if not (isinstance(weight, Literal) and weight.value == 1):
            if not entry.weighted:
                raise Unsupported(f"{entry.name} with a frequency is not supported")
            return aggregate_function(entry.weighted), (*args, weight)
    return entry, args


def _mode(function: CatalystNode, entry: AggregateFunction, translate: Translator) -> _Arguments:
    if function.optional("reverseOpt") is None:
        raise Unsupported("mode without a direction depends on the order of Spark's hash map")
    return entry, (translate(function.children[0]),)


def _listagg(function: CatalystNode, entry: AggregateFunction, translate: Translator) -> _Arguments:
    """Translate LISTAGG: the value and the delimiter; with WITHIN GROUP, a struct of the value and its sort keys."""
    value, delimiter = translate(function.children[0]), translate(function.children[1])
    if not isinstance(delimiter, Literal):
        raise Unsupported("listagg with a delimiter that varies is not supported")
    if delimiter.value is None:
        delimiter = Literal("" if value.dtype == t.STRING else b"", value.dtype)
    orders = function.children[2:]
    if not orders:
        return entry, (value, delimiter)
    keys = [translate(order.children[0]) for order in orders]
    text = directions(
        (order["direction"] == "Ascending", order["nullOrdering"] == "NullsFirst") for order in orders
    )
    return aggregate_function("listagg_ordered"), (
        _struct([value, *keys]),
        delimiter,
        Literal(text, t.STRING),
    )


def _max_min_by_k(function: CatalystNode, entry: AggregateFunction, translate: Translator) -> _Arguments:
    """Translate MAX_BY or MIN_BY with a count: the value, the key, and the number of values."""
    value, order, number = (translate(child) for child in function.children)
    if not isinstance(number, Literal) or number.value is None:
        raise Unsupported(f"{entry.calls.name_of(entry.name)} of a number that varies is not supported")
    return entry, (value, order, number)


def _of_pandas(function: CatalystNode, entry: AggregateFunction, translate: Translator) -> _Arguments:
    """Translate a statistic of pandas on Spark: that of a sample if ddof is 1, of the population if it is 0."""
    if function["ddof"] not in (0, 1):
        raise Unsupported(f"{entry.name} with ddof = {function['ddof']} is not supported")
    return entry, tuple(translate(child) for child in function.children)


def _struct(values: Sequence[Expr]) -> Expr:
    named = [part for i, v in enumerate(values) for part in (Literal(f"c{i}", t.STRING), v)]
    return Call.of("named_struct", *named)


def _double(expr: Expr, translate: Translator) -> Expr:
    if expr.dtype == t.DOUBLE:
        return expr
    if not t.is_numeric(expr.dtype):
        raise Unsupported(f"percentile of {t.spark_name(expr.dtype)} is not supported")
    return Cast(expr, t.DOUBLE, EvalMode.ANSI, translate.time_zone)


_READ_FIELDS = {"HyperLogLogPlusPlus": ("relativeSD",)}
_ARGUMENTS: dict[str, _Handler] = {
    "Count": _count,
    "HyperLogLogPlusPlus": _approx_count_distinct,
    "Percentile": _percentile,
    "PercentileDisc": _percentile,
    "Mode": _mode,
    "ListAgg": _listagg,
    "MaxMinByK": _max_min_by_k,
    "PandasStddev": _of_pandas,
    "PandasVariance": _of_pandas,
    "PandasCovar": _of_pandas,
}

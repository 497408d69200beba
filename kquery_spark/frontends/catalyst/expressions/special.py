"""Functions whose Catalyst classes have fields besides their arguments."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Case, Cast, Expr, Literal
from kquery_spark.expr.properties import can_raise
from kquery_spark.frontends.catalyst.expressions.months import month_count
from kquery_spark.frontends.catalyst.expressions.parameters import check_parameters
from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS, Translator, check_loops
from kquery_spark.frontends.catalyst.scope import same_type
from kquery_spark.functions.math.overflow import mode_for_types
from kquery_spark.functions.registry import (
    COLUMN,
    EvalMode,
    Function,
    for_catalyst,
    for_java_method,
    function,
)
from kquery_spark.spark_bridge.plan.plan_tree import (
    CHAR_UTILITIES,
    EXPRESSION_CLASSES,
    JAVA_METHOD_OWNERS,
    CatalystNode,
)
from kquery_spark.types import names as t
from kquery_spark.types.spark_json import is_variant
from kquery_spark.types.units import DAY_MICROS

_BASE64 = f"{EXPRESSION_CLASSES}Base64"


@EXPRESSIONS.handles(
    "GetTimestamp", "MakeTimestamp", family="functions", partly="timestamp and timestamp_ntz"
)
def timestamp_function(node: CatalystNode, translate: Translator) -> Expr:
    """Translate the parsing or building of a timestamp, of the kind (timestamp or timestamp_ntz) in the node's field."""
    entry = for_catalyst(node.cls)
    assert entry is not None
    dtype = translate.type(node["dataType"])
    if node.cls == "GetTimestamp" and not t.is_timestamp(dtype):
        raise Unsupported("parsing a string as timestamp_ntz with a pattern is not supported")
    args = [translate(child) for child in node.children]
    if node.cls == "GetTimestamp" and args[0].dtype != t.STRING:
        raise Unsupported(
            f"parsing {t.spark_name(args[0].dtype)} as a timestamp with a pattern is not supported"
        )
    translate.check_version(node, entry.name, args)
    translate.check_fields(node, *check_parameters(node, entry.parameters, node.cls))
    mode = translate.mode(node, entry, args)
    return Call.of(entry.name, *args, mode=mode, tz=translate.zone(node), dtype=dtype)


@EXPRESSIONS.handles(
    "TimestampAdd", "TimestampDiff", family="functions", partly="units from microseconds to years"
)
def by_unit(node: CatalystNode, translate: Translator) -> Expr:
    """TIMESTAMPADD and TIMESTAMPDIFF; the unit becomes the first argument."""
    name = node.cls.lower()
    args = [translate(child) for child in node.children]
    if args[0].dtype == t.INT:  # the quantity of Spark 3.5's TIMESTAMPADD
        args[0] = Cast(args[0], t.LONG, EvalMode.ANSI, translate.time_zone)
    translate.check_fields(node, "unit")
    return Call.of(name, Literal(str(node["unit"]), t.STRING), *args, tz=translate.zone(node))


@EXPRESSIONS.handles("ElementAt", family="functions", partly="arrays, maps and the parts of SPLIT_PART")
def element_at(node: CatalystNode, translate: Translator) -> Expr:
    """ELEMENT_AT; also SPLIT_PART, which returns an empty string for a part that does not exist."""
    instead = node.fields.get("defaultValueOutOfBound")
    if not instead:
        return translate.call(function("element_at"), node)
    array, number = node.children[:2]
    # The JSON repeats the tree of the default, which is not a child.
    empty = type(instead) is list and len(instead) == 1 and instead[0].get("value") == ""
    if array.cls != "StringSplitSQL" or not empty or node["failOnError"]:
        raise Unsupported("element access with a default for an index out of bounds is not supported")
    translate.check_fields(array)
    return Call.of("split_part", *[translate(child) for child in (*array.children, number)])


@EXPRESSIONS.handles(
    "Sequence", family="functions", partly="whole numbers, dates and timestamps; months are a constant"
)
def sequence(node: CatalystNode, translate: Translator) -> Expr:
    """SEQUENCE; with a step of a year-month interval it is a different entry."""
    step = translate(node.children[2]) if len(node.children) > 2 else None
    if step is not None and step.dtype == t.YEAR_MONTH:
        start, stop = (translate(child) for child in node.children[:2])
        return Call.of("sequence_by_months", start, stop, month_count(step))
    call = translate.call(function("sequence"), node)
    assert isinstance(call, Call)
    if pa.types.is_timestamp(call.args[0].dtype) and not _is_less_than_a_day(call.args[2]):
        raise Unsupported(
            "a sequence of timestamps by days, or by a step that is not a constant, is not supported"
        )
    return call


def _is_less_than_a_day(step: Expr) -> bool:
    return isinstance(step, Literal) and (step.value is None or abs(step.value) < DAY_MICROS)


@EXPRESSIONS.handles(
    "CreateMap", family="functions", partly="floating-point keys that are constants other than 0"
)
def map_of(node: CatalystNode, translate: Translator) -> Expr:
    """MAP. Spark's generated code retains a key of -0.0, but its interpreted evaluation converts it to 0.0."""
    entry = for_catalyst(node.cls)
    assert entry is not None
    call = translate.call(entry, node)
    keys = call.children[::2]
    if any(t.is_fractional(key.dtype) and not (isinstance(key, Literal) and key.value) for key in keys):
        raise Unsupported("map() of floating-point keys is not supported, because one may be -0.0")
    return call


@EXPRESSIONS.handles("ArraysZip", family="functions")
def arrays_zip(node: CatalystNode, translate: Translator) -> Expr:
    """ARRAYS_ZIP, whose fields have names that are not arguments."""
    names = [tree[0].get("value") for tree in node["names"]]
    if not all(isinstance(name, str) for name in names) or len(names) != len(node.children):
        raise Unsupported("ARRAYS_ZIP with names that are not constants is not supported")
    arrays = [translate(child) for child in node.children]
    pairs = zip(names, arrays, strict=True)
    return Call.of(
        "arrays_zip", *(part for name, array in pairs for part in (Literal(name, t.STRING), array))
    )


@EXPRESSIONS.handles("Size", family="functions")
def size(node: CatalystNode, translate: Translator) -> Expr:
    """The number of elements; -1 for NULL if the node says so, as it does without ANSI mode."""
    count = translate.call(function("size"), node)
    return Call.of("coalesce", count, Literal(-1, t.INT)) if node["legacySizeOfNull"] else count


@EXPRESSIONS.handles("PreciseTimestampConversion", family="functions")
def precise_timestamp_conversion(node: CatalystNode, translate: Translator) -> Expr:
    """Translate Spark's conversion of timestamps to microseconds and back, which implements WINDOW."""
    dtype = translate.type(node["toType"])
    return Call.of("precise_timestamp", translate(node.children[0]), dtype=dtype)


@EXPRESSIONS.handles(
    "StaticInvoke",
    family="functions",
    partly="methods of functions in the registry, CHAR columns; other Java methods are not supported",
)
def static_invoke(node: CatalystNode, translate: Translator) -> Expr:
    """Translate functions that Spark replaces by a call of a static Java method."""
    owner, method = str(node.fields.get("staticObject")), str(node.fields.get("functionName"))
    if (owner, method) == (_BASE64, "encode"):
        return Call.of("base64", *[translate(child) for child in node.children])
    if (owner, method) == (CHAR_UTILITIES, "readSidePadding"):
        text, length = (translate(child) for child in node.children)
        long_enough = Call.of("gteq", Call.of("length", text), length)
        return Case(((long_enough, text),), Call.of("rpad", text, length, Literal(" ", t.STRING)))
    simple = owner.rsplit(".", 1)[-1].rstrip("$")
    entries = for_java_method(simple, method) if owner.startswith(JAVA_METHOD_OWNERS) else ()
    if not entries:
        raise Unsupported(f"the Java method {method} of {simple} is not supported")
    read = translate.with_variants if any(entry.takes_variants for _, entry in entries) else translate
    args = [read(child) for child in node.child_list("arguments")]
    literals = [a.value if isinstance(a, Literal) else COLUMN for a in args]
    for java, entry in entries:
        own = java.own_arguments(literals)
        if own is not None:
            return _of_java_method(entry, java.mode, [args[i] for i in own], node, translate)
    raise Unsupported(f"{entries[0][1].name} with these parameters is not supported")


def _of_java_method(
    entry: Function, mode: EvalMode, args: list[Expr], node: CatalystNode, translate: Translator
) -> Expr:
    check_loops(entry)
    translate.check_version(node, entry.name, args)
    call = Call.of(entry.name, *args, mode=mode, tz=translate.time_zone)
    dtype = t.VARIANT if is_variant(node["dataType"]) else translate.type(node["dataType"])
    if not same_type(call.dtype, dtype):
        raise Unsupported(f"{entry.name} of another type is not supported")
    return call


@EXPRESSIONS.handles(
    "TryEval", family="functions", partly="of functions that can give NULL instead of an error"
)
def try_eval(node: CatalystNode, translate: Translator) -> Expr:
    """TryEval: NULL if the function raises an error. Its arguments must not raise errors, which Spark would catch, too."""
    call = translate(node.children[0])
    if not can_raise(call):
        return call
    can_try = isinstance(call, Call) and EvalMode.ANSI in call.entry.raises
    if not isinstance(call, Call) or not can_try or any(map(can_raise, call.args)):
        raise Unsupported("an expression whose errors Spark catches is not supported")
    return replace(call, mode=mode_for_types([a.dtype for a in call.args], EvalMode.TRY))


@EXPRESSIONS.handles("RaiseError", family="functions", partly="with a message, not with an error class")
def raise_error(node: CatalystNode, translate: Translator) -> Expr:
    """RAISE_ERROR and the last branch of ASSERT_TRUE; in Spark 4, the message is in a map of parameters."""
    first, *parameters = node.children
    if not parameters:
        return Call.of("raise_error", translate(first))
    message = translate(parameters[0])
    if first.fields.get("value") != "USER_RAISED_EXCEPTION" or not isinstance(message, Call):
        raise Unsupported("raise_error with an error class is not supported")
    key, *values = message.args
    if key != Literal("errorMessage", t.STRING) or len(values) != 1:
        raise Unsupported("raise_error with other parameters than a message is not supported")
    return Call.of("raise_error", values[0])


@EXPRESSIONS.handles("Unhex", family="functions")
def unhex(node: CatalystNode, translate: Translator) -> Expr:
    """UNHEX, or TO_BINARY with the format 'hex', which raises an error for malformed strings."""
    if node.fields.get("failOnError"):
        return Call.of("to_binary", translate(node.children[0]))
    return translate.call(function("unhex"), node)

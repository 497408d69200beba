"""Functions that Spark calls as methods of an evaluator object, whose printed form has the non-argument parameters."""

from __future__ import annotations

import re

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Call, Expr
from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS, Translator
from kquery_spark.functions.registry import EvalMode
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode

_JSON_WRITER = re.compile(r"StructsToJsonEvaluator\(Map\(\),.*,Some\(([^()]*)\)\)", re.DOTALL)
_TIME_PARSER = "ToTimeParser(None)"
_CLASS = re.compile(r"\w+")
_URL_PARSER = re.compile(r"ParseUrlEvaluator\(.*,(true|false)\)", re.DOTALL)


@EXPRESSIONS.handles(
    "Invoke",
    family="functions",
    partly="parse_url, to_json, to_time without a format; other Java methods are not supported",
)
def invoke(node: CatalystNode, translate: Translator) -> Expr:
    """Translate a method call of a constant object, whose fields the JSON contains as one string."""
    target = node.child("targetObject")
    text = str(target.fields.get("value")) if target.cls == "Literal" else ""
    arguments = node.child_list("arguments")
    if node["functionName"] == "evaluate" and target.fields.get("dataType") == "object":
        parser = _URL_PARSER.fullmatch(text)
        if parser is not None:
            mode = EvalMode.ANSI if parser[1] == "true" else EvalMode.LEGACY
            return Call.of("parse_url", *map(translate, arguments), mode=mode)
        writer = _JSON_WRITER.fullmatch(text)
        if writer is not None:
            args = [translate(argument) for argument in arguments]
            translate.check_version(node, "to_json", args)
            if translate.facts.writes_nulls(target):
                raise Unsupported(
                    "to_json writes NULLs of columns that have a default, so it falls back to Spark"
                )
            return Call.of("to_json", *args, tz=writer[1])
    if node["functionName"] == "parse" and text == _TIME_PARSER and len(arguments) == 1:
        args = [translate(argument) for argument in arguments]
        translate.check_version(node, "to_time", args)
        return Call.of("to_time", *args)
    owner = _CLASS.match(text)
    of_class = f" of {owner[0]}" if owner else ""
    raise Unsupported(f"the Java method {node['functionName']}{of_class} is not supported")

"""Python UDFs, which Spark's optimizer moves from expressions to nodes of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Expr
from kquery_spark.frontends.catalyst.expressions import Translator
from kquery_spark.frontends.catalyst.plans.context import PLANS, Context
from kquery_spark.frontends.catalyst.scope import PlanScope
from kquery_spark.logical import EvalPython
from kquery_spark.logical.python_calls import PythonCalls
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.spark_bridge.python.call import PythonCall
from kquery_spark.spark_bridge.python.functions import PythonFunctions
from kquery_spark.types.names import is_nested
from kquery_spark.types.spark_json import is_exact_in_arrow

CONDITION = "not of year-month intervals; a nondeterministic function at one place of the query"


@PLANS.handles(
    *("BatchEvalPython", "ArrowEvalPython"),
    family="user code",
    partly=CONDITION,
)
def eval_python(node: CatalystNode, context: Context) -> PlanScope:
    """Import the child's columns and a column for each function."""
    functions = require_python_functions(context, "a Python UDF")
    child = context.subtree_or_handover(node.children[0])
    calls = PythonCallCollector(context.translator(child.columns), functions)
    attributes = node.trees("resultAttrs")
    for udf in node.trees("udfs"):
        calls.add(udf)
    results = [result_type(attribute["dataType"], calls.translate) for attribute in attributes]
    kind = int(node.fields.get("evalType") or node.trees("udfs")[0]["evalType"])
    names = [context.names.fresh(attribute["name"]) for attribute in attributes]
    schema = pa.schema([pa.field(name, dtype, True) for name, dtype in zip(names, results, strict=True)])
    code = functions.evaluation(kind, calls.calls, unnamed(calls.types), schema)
    plan = EvalPython(child.plan, tuple(calls.arguments), PythonCalls(schema, tuple(calls.shown), *code))
    ids = (attribute["exprId"] for attribute in attributes)
    return PlanScope(plan, (*child.output, *zip(ids, names, strict=True)))


def require_python_functions(context: Context, feature: str) -> PythonFunctions:
    """Return the reader of the plan's functions; raises Unsupported if all Python functions fall back to Spark.

    feature: what the query uses, for the reason, such as "a Python UDF".
    """
    if context.functions is None:
        raise Unsupported(f"{feature} is not supported")
    return context.functions


class PythonCallCollector:
    """Collects the Python calls of one node, which share their arguments. types: Spark's types of the arguments."""

    def __init__(self, translate: Translator, functions: PythonFunctions) -> None:
        self.translate = translate
        self.calls: list[PythonCall] = []
        self.arguments: list[Expr] = []
        self.types: list[pa.DataType] = []
        self.shown: list[str] = []
        self._functions = functions

    def add(self, udf: CatalystNode) -> None:
        """Add a call of a function, or of a chain of nested functions; the innermost function is called first."""
        functions, names = [self._functions.function(udf)], [str(udf["name"])]
        while len(udf.children) == 1 and udf.children[0].cls == "PythonUDF":
            udf = udf.children[0]
            functions.insert(0, self._functions.function(udf))
            names.append(str(udf["name"]))
        offsets, keywords, shown = self.arguments_of(udf)
        self.calls.append(PythonCall(tuple(functions), offsets, keywords))
        self.shown.append(f"{'('.join(names)}({', '.join(shown)}{')' * len(names)}")

    def arguments_of(self, udf: CatalystNode) -> tuple[tuple[int, ...], tuple[str, ...], list[str]]:
        """Add the arguments of a function to the shared ones; returns their offsets, names, and printed forms."""
        offsets, keywords, shown = [], [], []
        for argument in udf.children:
            keyword = ""
            if argument.cls == "NamedArgumentExpression":
                keyword, argument = str(argument["key"]), argument.children[0]
            value = self.translate(argument)
            if value not in self.arguments:
                self.arguments.append(value)
                self.types.append(self._type(argument, value))
            offsets.append(self.arguments.index(value))
            keywords.append(keyword)
            shown.append(f"{keyword} => {value}" if keyword else str(value))
        return tuple(offsets), tuple(keywords), shown

    def _type(self, node: CatalystNode, value: Expr) -> pa.DataType:
        """Spark's type of an argument, whose nested nullability may be more exact than in the engine's type."""
        if not is_nested(value.dtype):
            return value.dtype
        is_attribute = node.cls == "AttributeReference"
        return self.translate.type(node["dataType"] if is_attribute else self.translate.facts.data_type(node))


def result_type(spark: Any, translate: Translator) -> pa.DataType:
    """The JSON type that a function returns; raises Unsupported if an Arrow type cannot represent it exactly."""
    if not is_exact_in_arrow(spark):
        raise Unsupported(
            "a Python function that returns intervals of other units than day to second is not supported"
        )
    return translate.type(spark)


def unnamed(types: Iterable[pa.DataType]) -> pa.Schema:
    """The schema of arguments whose names functions do not see."""
    return pa.schema([pa.field(f"_{i}", dtype, True) for i, dtype in enumerate(types)])

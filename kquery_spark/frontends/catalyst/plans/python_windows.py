"""Window with Python functions: each a grouped aggregate function, called on the rows of a frame."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Column, Expr, Frame, SortKey
from kquery_spark.frontends.catalyst.expressions import Translator
from kquery_spark.frontends.catalyst.expressions.translator import WindowSink
from kquery_spark.frontends.catalyst.plans.context import Context
from kquery_spark.frontends.catalyst.plans.projections import compute
from kquery_spark.frontends.catalyst.plans.python_aggregates import evaluation_type, python_aggregate
from kquery_spark.frontends.catalyst.plans.python_functions import Calls, functions_of
from kquery_spark.frontends.catalyst.plans.window_frames import specification, window_frame
from kquery_spark.frontends.catalyst.scope import Scope
from kquery_spark.logical import WindowPython
from kquery_spark.logical.python_calls import PythonCalls
from kquery_spark.spark_bridge.plan_tree import CatalystNode
from kquery_spark.spark_bridge.python_call import PythonCall


def window_of_functions(node: CatalystNode, context: Context) -> Scope:
    """The child's columns and a column for each function."""
    functions = functions_of(context, "a Python function over a window")
    child = context.feed(node.children[0])
    translate = context.translator(child.columns)
    partition, order = specification(node, translate)
    calls = Calls(translate, functions)
    sink = _PythonWindows(context, calls, order)
    around = context.translator(child.columns, windows=sink)
    computed: list[tuple[int, str, Expr]] = []
    for item in node.trees("windowExpressions"):
        sink.alias = item["name"]
        computed.append((item["exprId"], item["name"], around(item)))
    bounded = tuple(dict.fromkeys(frame for frame in sink.frames if not frame.whole))
    given = [_with_bounds(c, f, bounded) for c, f in zip(calls.calls, sink.frames, strict=True)]
    bounds = [pa.int32()] * (2 * len(bounded))
    types = [*bounds, *(argument.dtype for argument in calls.arguments)]
    read = pa.schema([pa.field(f"_{i}", dtype, True) for i, dtype in enumerate(types)])
    results = pa.schema(sink.results)
    code = functions.windows(sink.kind, given, [f.whole for f in sink.frames], read, results)
    shown = tuple(f"{call} OVER ({f})" for call, f in zip(calls.shown, sink.frames, strict=True))
    made = PythonCalls(results, shown, *code)
    plan = WindowPython(child.plan, partition, order, bounded, tuple(calls.arguments), made)
    passed = [(expr_id, name, plan.column(name)) for expr_id, name in child.output]
    return compute(plan, [*passed, *computed], context)


class _PythonWindows(WindowSink):
    """The Python functions of one Window, all of one evaluation type, each with its frame and the name of its column."""

    def __init__(self, context: Context, calls: Calls, order: tuple[SortKey, ...]) -> None:
        self._context = context
        self._calls = calls
        self._order = order
        self._kinds: set[int] = set()
        self.frames: list[Frame] = []
        self.results: list[pa.Field] = []
        self.alias = "window"

    @property
    def kind(self) -> int:
        """The evaluation type."""
        if len(self._kinds) != 1:
            raise Unsupported("Python functions of several kinds over one window run in Spark")
        return next(iter(self._kinds))

    @override
    def column(self, node: CatalystNode) -> Column:
        function = node.child("windowFunction")
        if function.cls != "AggregateExpression" or function.child("aggregateFunction").cls != "PythonUDAF":
            raise Unsupported("a Python function over a window beside others runs in Spark")
        udf = python_aggregate(function)
        translate: Translator = self._calls.translate
        self.frames.append(
            window_frame(node.child("windowSpec").child("frameSpecification"), translate, self._order)
        )
        self._kinds.add(evaluation_type(udf))
        self._calls.add(udf)
        dtype = translate.type(udf["dataType"])
        self.results.append(pa.field(self._context.names.fresh(self.alias), dtype, True))
        return Column(self.results[-1].name, dtype, True)

    @override
    def sum_of_digits(self, node: CatalystNode) -> None:
        return None


def _with_bounds(call: PythonCall, frame: Frame, bounded: tuple[Frame, ...]) -> PythonCall:
    """A call whose arguments come after the bounds of all frames; those of its own frame are its first arguments."""
    offsets = tuple(2 * len(bounded) + offset for offset in call.offsets)
    if frame.whole:
        return replace(call, offsets=offsets)
    first = 2 * bounded.index(frame)
    return replace(call, offsets=(first, first + 1, *offsets), names=("", "", *call.names))

"""Window with Python functions, which are grouped aggregate functions that are called with the rows of a frame."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Column, Expr, Frame, SortKey
from kquery_spark.frontends.catalyst.expressions.translator import WindowSink
from kquery_spark.frontends.catalyst.plans.context import Context
from kquery_spark.frontends.catalyst.plans.projections import compute
from kquery_spark.frontends.catalyst.plans.python_aggregates import PYTHON, AggregateCalls
from kquery_spark.frontends.catalyst.plans.python_functions import require_python_functions, unnamed
from kquery_spark.frontends.catalyst.plans.window_frames import specification, window_frame
from kquery_spark.frontends.catalyst.scope import PlanScope
from kquery_spark.logical import WindowPython
from kquery_spark.logical.python_calls import PythonCalls
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.spark_bridge.python.call import PythonCall


def window_of_functions(node: CatalystNode, context: Context) -> PlanScope:
    """Import the child's columns and a column for each function."""
    functions = require_python_functions(context, "a Python function over a window")
    child = context.subtree_or_handover(node.children[0])
    translate = context.translator(child.columns)
    partition, order = specification(node, translate)
    calls = AggregateCalls(context, translate, functions)
    windows = _PythonWindows(calls, order)
    around = context.translator(child.columns, windows=windows)
    computed: list[tuple[int, str, Expr]] = []
    for item in node.trees("windowExpressions"):
        windows.alias = item["name"]
        computed.append((item["exprId"], item["name"], around(item)))
    frames = windows.frames
    bounded = tuple(dict.fromkeys(frame for frame in frames if not frame.whole))
    given = [_with_bounds(call, frame, bounded) for call, frame in zip(calls.calls, frames, strict=True)]
    arguments = unnamed([*[pa.int32()] * (2 * len(bounded)), *calls.types])
    results = pa.schema(calls.results)
    code = functions.windows_evaluation(calls.eval_type, given, [f.whole for f in frames], arguments, results)
    shown = tuple(f"{call} OVER ({frame})" for call, frame in zip(calls.shown, frames, strict=True))
    made = PythonCalls(results, shown, *code)
    plan = WindowPython(child.plan, partition, order, bounded, tuple(calls.arguments), made)
    passed = [(expr_id, name, plan.column(name)) for expr_id, name in child.output]
    return compute(plan, [*passed, *computed], context)


class _PythonWindows(WindowSink):
    """The Python functions of one Window and their frames. alias: the name for the next column."""

    def __init__(self, calls: AggregateCalls, order: tuple[SortKey, ...]) -> None:
        self._calls = calls
        self._order = order
        self.frames: list[Frame] = []
        self.alias = "window"

    @override
    def column(self, node: CatalystNode) -> Column:
        function = node.child("windowFunction")
        if function.cls != "AggregateExpression" or function.child("aggregateFunction").cls != PYTHON:
            raise Unsupported(
                "a Python function over a window together with other window functions is not supported"
            )
        frame = node.child("windowSpec").child("frameSpecification")
        self.frames.append(window_frame(frame, self._calls.translate, self._order))
        return self._calls.column(function, self.alias)


def _with_bounds(call: PythonCall, frame: Frame, bounded: tuple[Frame, ...]) -> PythonCall:
    """Convert the argument offsets of a call to the layout of the input columns, and put the bounds of its frame first.

    The input has two columns (lower and upper bound) for each bounded frame, then the arguments that all calls share.
    With two bounded frames, a call of argument 0 over the second frame has the offsets (2, 3, 4).
    """
    offsets = tuple(2 * len(bounded) + offset for offset in call.offsets)
    if frame.whole:
        return replace(call, offsets=offsets)
    first = 2 * bounded.index(frame)
    return replace(call, offsets=(first, first + 1, *offsets), names=("", "", *call.names))

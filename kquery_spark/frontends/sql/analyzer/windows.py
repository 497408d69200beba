"""Window functions: calls with OVER, gathered into Window nodes below the select list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Expr, Literal, Named, SortKey, WindowCall
from kquery_spark.expr.windows import (
    PICKS,
    UP_TO_PEERS,
    UP_TO_ROW,
    WHOLE_PARTITION,
    Frame,
    FrameUnit,
    in_days,
)
from kquery_spark.frontends.sql.analyzer.scope import Names
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast.node import walk
from kquery_spark.functions.aggregate_registry import has_aggregate
from kquery_spark.functions.windows import window_function
from kquery_spark.logical import LogicalPlan, Window
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.analyzer.expressions import ExpressionAnalyzer

_RANKING = frozenset({"row_number", "rank", "dense_rank", "percent_rank", "ntile", "cume_dist"})
_OFFSETS = frozenset({"lag", "lead"})
# Over a window these are the values at the frame's ends.
_PICKS = {"first": "first_value", "any_value": "first_value", "last": "last_value"}
_ZERO = Literal(0, t.INT)
# Spark's class of error for a window function in a clause that has none.
_NOT_ALLOWED = {
    "WHERE": "WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE",
    "HAVING": "WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE",
    "ORDER BY": "UNSUPPORTED_EXPR_FOR_OPERATOR",
    "a join condition": "UNSUPPORTED_EXPR_FOR_OPERATOR",
}


@dataclass(frozen=True)
class WindowMark(Expr):
    """A call with its window, until the node that computes it is built."""

    call: WindowCall
    partition: tuple[Expr, ...]
    order: tuple[SortKey, ...]

    @property
    def dtype(self) -> pa.DataType:
        """See Expr."""
        return self.call.dtype

    @property
    def nullable(self) -> bool:
        """See Expr."""
        return self.call.nullable

    @property
    def children(self) -> tuple[Expr, ...]:
        """See Expr."""
        return (*self.call.args, *self.partition, *(k.expr for k in self.order))

    def with_children(self, children: Sequence[Expr]) -> Expr:
        """See Expr."""
        args, parts = len(self.call.args), len(self.partition)
        call = self.call.with_children(children[:args])
        assert isinstance(call, WindowCall)
        order = tuple(replace(k, expr=e) for k, e in zip(self.order, children[args + parts :], strict=True))
        return WindowMark(call, tuple(children[args : args + parts]), order)


def is_window_function(name: str) -> bool:
    """Whether a function exists only over a window."""
    return window_function(name) is not None


def window_call(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """The expression of a call with OVER."""
    from kquery_spark.frontends.sql.analyzer.calls import percentile_shares, percentiles

    if analyzer.in_window:
        raise Unsupported("A window function inside another one is not supported.")
    if not analyzer.windows:
        error = _NOT_ALLOWED.get(analyzer.place, "UNSUPPORTED_EXPR_FOR_WINDOW")
        analyzer.fail(f"[{error}] a window function is not allowed in {analyzer.place}", node)
    name = node.name[0].lower()
    shares = percentile_shares(node)
    if shares is not None:
        return percentiles(analyzer, node, shares, window_call)
    if node.distinct:
        analyzer.fail("[DISTINCT_WINDOW_FUNCTION_UNSUPPORTED] DISTINCT has no meaning over a window", node)
    if node.filter is not None:
        _check_filter(analyzer, name, node)
    if window_function(_PICKS.get(name, name)) is None and not has_aggregate(_PICKS.get(name, name)):
        analyzer.fail(f"[UNSUPPORTED_EXPR_FOR_WINDOW] {name} is no window function", node)
    spec = _spec(analyzer, node)
    analyzer.windows, analyzer.in_window = False, True
    try:
        partition = tuple(analyzer.expr(p) for p in spec.partition_by)
        order = tuple(SortKey(analyzer.expr(s.expression), s.ascending, s.nulls_first) for s in spec.order_by)
        condition = None if node.filter is None else analyzer.condition(node.filter, "FILTER")
        name, args, ignore = _arguments(analyzer, name, node)
    finally:
        analyzer.windows, analyzer.in_window = True, False
    frame = _frame(analyzer, name, spec, order)
    call = WindowCall.of(
        name, *args, frame=frame, ignore_nulls=ignore, mode=analyzer.facts.mode, condition=condition
    )
    if (name in _RANKING or name in _OFFSETS) and not order:
        analyzer.fail(f"[WINDOW_FUNCTION_FRAME_NOT_ORDERED] {name} needs an ORDER BY in its window", node)
    return WindowMark(call, partition, order)


def _check_filter(analyzer: ExpressionAnalyzer, name: str, node: ast.Call) -> None:
    if window_function(name) is not None and name not in PICKS:
        analyzer.fail(
            f"[INVALID_SQL_SYNTAX.FUNCTION_WITH_UNSUPPORTED_SYNTAX] {name} does not support FILTER", node
        )


def _spec(analyzer: ExpressionAnalyzer, node: ast.Call) -> ast.WindowSpec:
    if isinstance(node.over, ast.WindowSpec):
        return node.over
    assert isinstance(node.over, ast.WindowName)
    found = analyzer.named_windows.get(node.over.name)
    if found is None:
        analyzer.fail(f"[MISSING_WINDOW_SPECIFICATION] there is no window {node.over.name}", node.over)
    return found


def _arguments(analyzer: ExpressionAnalyzer, name: str, node: ast.Call) -> tuple[str, list[Expr], bool]:
    from kquery_spark.frontends.sql.analyzer.calls import aggregate_arguments

    name = _PICKS.get(name, name)
    if window_function(name) is None:
        name, args = aggregate_arguments(analyzer, name, node)
        return name, args, False
    args = [analyzer.expr(a) for a in node.arguments]
    ignore = node.nulls == "IGNORE"
    if name in ("first_value", "last_value") and len(args) == 2:
        flag = args.pop()
        if not (isinstance(flag, Literal) and isinstance(flag.value, bool)):
            raise Unsupported(f"The second argument of {name} must be TRUE or FALSE.")
        ignore = flag.value
    if name == "nth_value" and len(args) == 3:
        raise Unsupported("nth_value with a third argument is not supported.")
    if name in _OFFSETS and len(args) > 2:
        args[2] = analyzer.convert.cast(args[2], args[0].dtype)
    if name in (*_OFFSETS, "nth_value") and len(args) > 1:
        args[1] = _constant(analyzer, args[1], name)
    if name == "ntile" and args:
        args[0] = _constant(analyzer, args[0], name)
    return name, args, ignore


def _constant(analyzer: ExpressionAnalyzer, expr: Expr, name: str) -> Expr:
    from kquery_spark.frontends.sql.analyzer.expressions import constant_of

    value = constant_of(analyzer.convert.cast(expr, t.INT))
    if value is None or value.value is None:
        raise Unsupported(f"{name} takes a constant number only.")
    return value


def _frame(
    analyzer: ExpressionAnalyzer, name: str, spec: ast.WindowSpec, order: tuple[SortKey, ...]
) -> Frame:
    if spec.frame is None:
        if name in _RANKING:
            return UP_TO_ROW
        if name in _OFFSETS:
            return WHOLE_PARTITION
        return UP_TO_PEERS if order else WHOLE_PARTITION
    written = spec.frame
    if name in _RANKING or name in _OFFSETS:
        analyzer.fail(f"[WINDOW_FUNCTION_AND_FRAME_MISMATCH] {name} takes no frame", written)
    unit = FrameUnit.ROWS if written.unit.upper() == "ROWS" else FrameUnit.RANGE
    if unit is FrameUnit.RANGE and not order:
        ends = (written.start.kind, written.end.kind)
        if ends != ("UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING"):
            analyzer.fail(
                "[DATATYPE_MISMATCH.RANGE_FRAME_WITHOUT_ORDER] a RANGE frame needs an ORDER BY", written
            )
    if written.start.kind == "UNBOUNDED FOLLOWING" or written.end.kind == "UNBOUNDED PRECEDING":
        analyzer.fail(
            "[DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_INVALID_BOUND] the frame's bounds are the wrong way round",
            written,
        )
    low = _bound(analyzer, written.start, unit, order)
    high = _bound(analyzer, written.end, unit, order)
    if low is not None and high is not None and low.value > high.value:
        analyzer.fail(
            "[DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_WRONG_COMPARISON] the frame starts after its end",
            written,
        )
    return Frame(unit, low, high)


def _bound(
    analyzer: ExpressionAnalyzer, bound: ast.FrameBound, unit: FrameUnit, order: tuple[SortKey, ...]
) -> Literal | None:
    from kquery_spark.frontends.sql.analyzer.expressions import constant_of

    if bound.kind.startswith("UNBOUNDED"):
        return None
    if bound.offset is None:
        return _ZERO
    offset = analyzer.expr(bound.offset)
    if unit is FrameUnit.ROWS:
        wanted = t.INT
        if not t.is_integral(offset.dtype):
            analyzer.fail(
                "[DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_UNACCEPTED_TYPE] ROWS counts whole rows", bound
            )
    else:
        if len(order) != 1:
            analyzer.fail(
                "[DATATYPE_MISMATCH.RANGE_FRAME_MULTI_ORDER] RANGE with an offset needs one ORDER BY key",
                bound,
            )
        key = order[0].expr.dtype
        if key == t.DATE:
            wanted = t.DAY_TIME if offset.dtype == t.DAY_TIME else t.INT
        elif pa.types.is_timestamp(key):
            wanted = t.DAY_TIME
        elif t.is_numeric(key) or key == t.DAY_TIME:
            wanted = key
        else:
            analyzer.fail(
                "[DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_UNACCEPTED_TYPE] RANGE with an offset needs an ORDER BY "
                f"key that is a number, a date or a timestamp, not {t.spark_name(key)}",
                bound,
            )
        if not (t.is_numeric(offset.dtype) or offset.dtype == t.DAY_TIME) or (
            key == t.DATE and not _of_days(bound.offset)
        ):
            analyzer.fail(
                "[DATATYPE_MISMATCH.RANGE_FRAME_INVALID_TYPE] the frame's bound has a wrong type", bound
            )
    value = constant_of(analyzer.convert.cast(offset, wanted))
    if value is None or value.value is None:
        analyzer.fail(
            "[DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_WITHOUT_FOLDABLE] the frame's bounds must be constant",
            bound,
        )
    if value.dtype == t.DAY_TIME and order[0].expr.dtype == t.DATE:
        value = in_days(value)
    return replace(value, value=-value.value) if bound.kind == "PRECEDING" else value


def _of_days(offset: ast.Expression) -> bool:
    """Whether intervals in an offset count days only, as those that Spark adds to dates do."""
    intervals = (node for node, _ in walk(offset) if isinstance(node, ast.IntervalLiteral))
    return all(node.start == node.end == "DAY" for node in intervals)


class Windows:
    """Collects window calls and builds one node for all that share a partition and an order."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._groups: dict[tuple[tuple[Expr, ...], tuple[SortKey, ...]], list[Named]] = {}
        self._columns: dict[Expr, Expr] = {}

    def rewrite(self, expr: Expr) -> Expr:
        """The expression over the windows' output."""
        found = self._columns.get(expr)
        if found is not None:
            return found
        if isinstance(expr, WindowMark):
            named = Named(expr.call, self._names.fresh(expr.call.function))
            self._groups.setdefault((expr.partition, expr.order), []).append(named)
            self._columns[expr] = named.column
            return named.column
        if not expr.children:
            return expr
        return expr.with_children([self.rewrite(c) for c in expr.children])

    def plan(self, child: LogicalPlan) -> LogicalPlan:
        """The child with a Window node for each partition and order."""
        for (partition, order), calls in self._groups.items():
            child = Window(child, tuple(calls), partition, order)
        return child

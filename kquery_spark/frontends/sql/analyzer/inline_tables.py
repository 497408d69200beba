"""Tables of constants in FROM (VALUES and ``range``), as scans of Arrow tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kquery_spark.errors import KQueryError, PlanError, Unsupported
from kquery_spark.expr import Expr, Literal
from kquery_spark.expr.constants import evaluate_constant, literal_vector
from kquery_spark.expr.properties import is_constant
from kquery_spark.frontends.sql.analyzer.constants import constant_of
from kquery_spark.frontends.sql.analyzer.conversions import Conversions
from kquery_spark.frontends.sql.analyzer.outer_row import OuterRow
from kquery_spark.frontends.sql.analyzer.scope import Scope
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast import relations as r
from kquery_spark.logical import LogicalPlan, Scan
from kquery_spark.sources.memory import MemorySource, local_source
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.analyzer.queries import QueryAnalyzer

_MAX_RANGE_ROWS = 20_000_000


def values_table(queries: QueryAnalyzer, node: r.Values, outer: OuterRow | None) -> LogicalPlan:
    """VALUES: constants at one type per column, named col1, col2 ..."""
    analyzer = queries.expressions(Scope((), queries.facts), outer, "VALUES")
    rows = [[analyzer.expr(v) for v in row] for row in node.rows]
    width = len(rows[0])
    for row, written in zip(rows, node.rows, strict=True):
        if len(row) != width:
            queries.fail(
                f"[INVALID_INLINE_TABLE.NUM_COLUMNS_MISMATCH] this row has {len(row)} value(s), the first has {width}",
                written[0],
            )
    arrays, fields = [], []
    for index in range(width):
        values = _common_values(queries, node, [row[index] for row in rows], index)
        constants = _constants(queries, values, [row[index] for row in node.rows])
        dtype = values[0].dtype
        arrays.append(_array(constants, dtype))
        fields.append(pa.field(f"col{index + 1}", dtype, any(c.value is None for c in constants)))
    schema = pa.schema(fields)
    table = pa.Table.from_arrays(arrays, schema=schema)
    return Scan("values", local_source(table))


def _common_values(queries: QueryAnalyzer, node: r.Values, values: Sequence[Expr], index: int) -> list[Expr]:
    """Cast the values of a column to their common type; strings cannot be combined with other types."""
    try:
        common = Conversions(queries.facts).common(values, "VALUES")
        if len({v.dtype == t.STRING for v in values if v.dtype != t.NULL}) > 1:
            raise PlanError("strings stay strings in VALUES")
    except PlanError:
        queries.fail(
            f"[INVALID_INLINE_TABLE.INCOMPATIBLE_TYPES_IN_INLINE_TABLE] column {index + 1} mixes types", node
        )
    return common


def _constants(
    queries: QueryAnalyzer, values: Sequence[Expr], written: Sequence[ast.Expression]
) -> list[Literal]:
    constants = []
    for value, node in zip(values, written, strict=True):
        if not is_constant(value):
            queries.fail(
                "[INVALID_INLINE_TABLE.CANNOT_EVALUATE_EXPRESSION_IN_INLINE_TABLE] VALUES takes constants",
                node,
            )
        try:
            constants.append(value if isinstance(value, Literal) else evaluate_constant(value))
        except Unsupported as error:
            queries.fail(error.reason, node)
        except KQueryError as error:
            queries.fail(f"[INVALID_INLINE_TABLE.FAILED_SQL_EXPRESSION_EVALUATION] {error}", node)
    return constants


def _array(constants: Sequence[Literal], dtype: pa.DataType) -> pa.Array:
    if dtype == t.NULL:
        return pa.nulls(len(constants))
    return pa.concat_arrays([pa.repeat(literal_vector(c).plain(), 1) for c in constants])


def function_table(queries: QueryAnalyzer, node: r.TableFunction) -> LogicalPlan:
    """``range(start, end, step, partitions)``, the only table function."""
    name = node.name[-1].lower()
    if name != "range":
        queries.fail(f"[UNRESOLVABLE_TABLE_VALUED_FUNCTION] unknown table function {name}", node)
    numbers = _range_numbers(queries, node)
    start, end = (0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
    step = numbers[2] if len(numbers) > 2 else 1
    if step == 0:
        queries.fail("range cannot take steps of 0", node)
    count = max(-((start - end) // step), 0)  # len(range(start, end, step)), which may be too large for len()
    if count > _MAX_RANGE_ROWS:
        queries.fail(f"range of more than {_MAX_RANGE_ROWS} rows is not supported", node)
    column = pa.array(start + step * np.arange(count, dtype=np.int64))
    table = pa.Table.from_arrays([column], schema=pa.schema([pa.field("id", t.LONG, False)]))
    return Scan("range", MemorySource(table.schema, f"range({start},{end},{step})", table))


def _range_numbers(queries: QueryAnalyzer, node: r.TableFunction) -> list[int]:
    analyzer = queries.expressions(Scope((), queries.facts), None, "range")
    numbers: list[int] = []
    for argument in node.arguments:
        with analyzer.at(argument):
            number = constant_of(analyzer.convert.cast(analyzer.expr(argument), t.LONG))
            if number is None or number.value is None:
                analyzer.fail("range takes constant whole numbers", argument)
            numbers.append(number.value)
    if not 1 <= len(numbers) <= 4:
        queries.fail("[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] range takes 1 to 4 numbers", node)
    return numbers

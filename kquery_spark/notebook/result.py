"""The result of ``%%kquery``: the first rows of a query as a table, in HTML and as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from pyspark.sql import DataFrame
from pyspark.sql.types import NumericType

from kquery_spark.frontends.dataframe import DataFrame as EngineDataFrame
from kquery_spark.frontends.dataframe.text import table_text
from kquery_spark.notebook.grid import Grid, read_grid
from kquery_spark.spark_bridge.frames.lazy_dataframe import show_string_of
from kquery_spark.types.names import is_numeric

_NOTE = "font-size:0.85em;opacity:0.7;margin:0.2em 0"


@dataclass(frozen=True)
class QueryResult:
    """The first rows of ``frame``, which a notebook shows as HTML.

    text: the output of ``show``. grid: its cells; None if it cannot be parsed. numeric: whether each column is numeric.
    """

    frame: DataFrame | EngineDataFrame
    text: str
    grid: Grid | None
    numeric: Sequence[bool]

    def __repr__(self) -> str:
        return self.text.rstrip("\n")

    def _repr_html_(self) -> str:
        grid = self.grid
        if grid is None:
            return f"<pre>{escape(self.text)}</pre>"
        if not grid.names:
            return f'<p style="{_NOTE}">no columns</p>'
        count = len(grid.rows)
        rows = f"{count:,} row{'' if count == 1 else 's'}"
        note = f"the first {rows}" if grid.is_cut else rows
        table = grid.html(tuple(self.numeric))
        return f'<div class="kquery-rows">{table}<p style="{_NOTE}">{note}</p></div>'


def spark_result(frame: DataFrame, count: int) -> QueryResult:
    """Return the first rows of a Spark DataFrame, as its ``show`` prints them."""
    text = show_string_of(frame, count, truncate=False)
    numeric = [isinstance(f.dataType, NumericType) for f in frame.schema.fields]
    try:
        return QueryResult(frame, text, read_grid(text), numeric)
    except ValueError:
        return QueryResult(frame, text, None, numeric)


def local_result(frame: EngineDataFrame, count: int) -> QueryResult:
    """Return the first rows of a DataFrame of an ``ExecutionContext``."""
    rows = frame.first_strings(count + 1)
    grid = Grid(tuple(frame.columns), tuple(map(tuple, rows[:count])), len(rows) > count)
    numeric = [is_numeric(field.type) for field in frame.schema]
    text = table_text(grid.names, grid.rows, truncate=0)
    return QueryResult(frame, text, grid, numeric)

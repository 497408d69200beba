"""Scans of the file of small row groups, and conditions on its columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kquery_spark.expr import Call, Column, Expr, InList, Literal
from kquery_spark.physical.operators import ScanExec, TaskContext
from kquery_spark.sources.base import Source, Split
from kquery_spark.types import names as t

ROWS, GROUP_ROWS = 200_000, 10_000
GROUPS = ROWS // GROUP_ROWS
K, S = Column("k", t.LONG, True), Column("s", t.STRING, True)


def scan(source: Source, *filters: Expr, splits: Sequence[Split] | None = None) -> ScanExec:
    names = tuple(source.schema.names)
    return ScanExec(0, "t", source, names, filters, tuple(source.splits() if splits is None else splits))


def rows_of(plan: ScanExec, task: TaskContext | None = None) -> pa.Table:
    batches = [batch.to_arrow() for batch in plan.execute(task or TaskContext())]
    arrays = [
        pa.concat_arrays([pa.array([], field.type), *(plain(batch.column(field.name)) for batch in batches)])
        for field in plan.schema
    ]
    return pa.table(arrays, plan.schema.names)


def plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


CONDITIONS = {
    "none": (),
    "on a dictionary of numbers": (Call.of("lt", K, Literal(7, t.LONG)),),
    "on a dictionary, few rows": (Call.of("eq", K, Literal(7, t.LONG)),),
    "on NULL": (Call.of("isnull", K),),
    "on strings": (InList(S, (Literal("word3", t.STRING), Literal("word99", t.STRING))),),
    "on plain numbers": (Call.of("lt", Column("plain", t.LONG, True), Literal(1 << 38, t.LONG)),),
    "on two columns": (
        Call.of("gteq", K, Literal(50, t.LONG)),
        Call.of("lt", Column("x", t.DOUBLE, True), Literal(0.25, t.DOUBLE)),
    ),
    "that no row passes": (Call.of("gt", K, Literal(98, t.LONG)), Call.of("lt", K, Literal(2, t.LONG))),
}


def damage(path: Path, group: int) -> None:
    """Overwrite the first bytes of a page."""
    chunk = pq.read_metadata(path).row_group(group).column(0)
    data = bytearray(path.read_bytes())
    start = chunk.data_page_offset
    data[start : start + 40] = b"\xff" * 40
    path.write_bytes(data)

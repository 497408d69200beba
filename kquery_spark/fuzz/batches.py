"""Batches of expressions: one query computes a hundred and more of them over one table, each a case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from random import Random
from typing import Literal

from kquery_spark.fuzz.expressions import (
    Expr,
    call_of,
    random_aggregate,
    random_call,
    random_expr,
    window_call,
)
from kquery_spark.fuzz.generate import SETTINGS, Case
from kquery_spark.fuzz.grammar import NESTED
from kquery_spark.fuzz.queries import Item, Scan, Select
from kquery_spark.fuzz.settings import LENIENT, TIME_ZONE, is_ansi
from kquery_spark.fuzz.tables import GROUP, ID, FuzzTable, wide_table
from kquery_spark.spark_bridge.session.settings import EXCLUDED_RULES_SETTING, OPTIMIZER_RULES

Shape = Literal["projected", "condition", "aggregate", "window"]
_SHAPES: tuple[Shape, ...] = (
    *("projected",) * 11,
    *("condition", "aggregate", "aggregate", "aggregate", "aggregate", "window", "window"),
)
_SIZES: dict[Shape, int] = {"projected": 400, "condition": 24, "aggregate": 250, "window": 200}
"""Conditions are few: each is a SELECT of its own, as conditions of one WHERE would hide each other's rows."""
_BATCHES_PER_TABLE = 6
_IN_PROCESS_SHARE = 0.35
"""How many batches are also run without Spark, by the same kernels."""
_ZONES = ("UTC", "UTC", "UTC", "America/Los_Angeles", "Asia/Kolkata")
_SETTINGS = (*[SETTINGS[0]] * (len(SETTINGS) - 1) * 3, *SETTINGS[1:])
"""One batch in four by Spark's workers, as each query takes them ten times what it takes the driver."""
_NOT_TOGETHER = ("listagg(", "DISTINCT ")
"""Spark fails to plan ordered lists beside several distinct aggregates."""
_UNFOLDED = {EXCLUDED_RULES_SETTING: f"{OPTIMIZER_RULES}ConstantFolding,{OPTIMIZER_RULES}NullPropagation"}


@dataclass(frozen=True)
class Batch:
    """Expressions over one table.

    grouped: aggregates are of each group, not of all rows. in_process: what has values is also computed without Spark.
    """

    table: FuzzTable
    shape: Shape
    exprs: tuple[Expr, ...]
    settings: dict[str, str] = field(default_factory=dict)
    grouped: bool = True
    in_process: bool = True

    @property
    def ansi(self) -> bool:
        """Whether Spark raises errors where values are out of range."""
        return is_ansi(self.settings)

    def sql(self) -> str:
        """One query: a row number ``id`` and columns ``c0 ...``; for conditions, which rows pass each one."""
        if self.shape == "condition":
            return " UNION ALL ".join(
                f"SELECT {n} AS n, {ID} AS id FROM {self.table.name} WHERE {expr.sql()}"
                for n, expr in enumerate(self.exprs)
            )
        columns = ", ".join(f"{expr.sql()} AS c{n}" for n, expr in enumerate(self.exprs))
        if self.shape != "aggregate":
            return f"SELECT {ID} AS id, {columns} FROM {self.table.name}"
        if not self.grouped:
            return f"SELECT 0 AS id, {columns} FROM {self.table.name}"
        return f"SELECT {GROUP} AS id, {columns} FROM {self.table.name} GROUP BY {GROUP}"

    def of(self, exprs: Sequence[Expr]) -> Batch:
        """The same with other expressions."""
        return replace(self, exprs=tuple(exprs))

    def row_expressions(self, expr: Expr) -> tuple[Expr, ...]:
        """The parts of an expression that have a value in each row: arguments of aggregates and window functions."""
        return (expr,) if self.shape in ("projected", "condition") else expr.args

    def case(self, expr: Expr) -> Case:
        """One of the expressions as a query, which can be shrunk."""
        scan = Scan(self.table.name)
        if self.shape == "condition":
            query = Select((Item(Expr(ID, "int"), "x"),), scan, where=expr)
        elif self.shape == "aggregate":
            key = Item(Expr(GROUP, "int"), "k", key=True)
            call = Item(expr, "x", call=True)
            query = Select((key, call) if self.grouped else (call,), scan)
        else:
            query = Select((Item(Expr(ID, "int"), "k"), Item(expr, "x")), scan)
        return Case((self.table,), query, self.settings)


def random_batch(seed: int, number: int) -> Batch:
    """Batch ``number`` of a seed. It needs none of the batches before it, so that a run can go on anywhere."""
    rng = Random(f"{seed}/{number}")
    table = _table(seed, number // _BATCHES_PER_TABLE)
    shape = rng.choice(_SHAPES)
    settings = dict(rng.choice(_SETTINGS))
    if rng.random() < 0.5:
        settings |= LENIENT
    settings[TIME_ZONE] = rng.choice(_ZONES)
    if rng.random() < 0.25 and shape != "window":  # whose bounds have to be literals
        settings |= _UNFOLDED
    raising = shape == "projected" and rng.random() < 0.5
    batch = Batch(table, shape, (), settings, rng.random() < 0.7, rng.random() < _IN_PROCESS_SHARE)
    left_out = rng.choice(_NOT_TOGETHER)
    exprs = (_expression(rng, batch, raising, left_out) for _ in range(_SIZES[shape]))
    return batch.of(list({expr.sql(): expr for expr in exprs}.values()))


@lru_cache(maxsize=16)
def _table(seed: int, number: int) -> FuzzTable:
    """One object for the batches that share it, as it is written to disk once."""
    return wide_table(Random(f"{seed}/table/{number}"), f"t{seed}")


def _expression(rng: Random, batch: Batch, raising: bool, left_out: str) -> Expr:
    columns = [column for column in batch.table.columns() if column[0] not in (ID, GROUP)]
    depth = rng.choice((1, 2, 2, 3))
    if batch.shape == "condition":
        return call_of(rng, columns, "boolean", depth, raising)
    if batch.shape == "aggregate":
        call = random_aggregate(rng, columns, depth, raising=raising)
        while left_out in call.text:
            call = random_aggregate(rng, columns, depth, raising=raising)
        if rng.random() < 0.25 and not call.text.startswith("sort_array("):
            where = random_expr(rng, columns, "boolean", 1, raising)
            call = replace(
                call, text=f"{call.text} FILTER (WHERE {{{len(call.args)}}})", args=(*call.args, where)
            )
        return call
    if batch.shape == "window":
        keys = rng.choice(([], [GROUP]))
        return window_call(rng, columns, depth, keys, ID + rng.choice(("", " DESC")), raising)
    call = random_call(rng, columns, depth, raising)
    # PySpark hands over no year-month intervals
    return Expr("CAST({0} AS STRING)", "string", (call,)) if call.kind == NESTED["months"] else call

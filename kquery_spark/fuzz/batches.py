"""Batches of expressions over one table. A single query computes up to 400 of them, and each counts as a case."""

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
from kquery_spark.fuzz.kinds import NESTED
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
"""The number of expressions of a batch. Conditions are few, because each needs a SELECT of its own: several conditions in
one WHERE would hide each other's rows."""
_BATCHES_PER_TABLE = 6
_IN_PROCESS_SHARE = 0.35
"""The share of batches that are also run without Spark, by the same kernels."""
_ZONES = ("UTC", "UTC", "UTC", "America/Los_Angeles", "Asia/Kolkata")
_SETTINGS = (*[SETTINGS[0]] * (len(SETTINGS) - 1) * 3, *SETTINGS[1:])
"""One batch in four runs in Spark's workers, where each query takes ten times as long as in the driver."""
_NOT_TOGETHER = ("listagg(", "DISTINCT ")
"""Spark cannot plan LISTAGG with an order together with several DISTINCT aggregates."""
_UNFOLDED = {EXCLUDED_RULES_SETTING: f"{OPTIMIZER_RULES}ConstantFolding,{OPTIMIZER_RULES}NullPropagation"}


@dataclass(frozen=True)
class Batch:
    """Expressions over one table.

    grouped: True for aggregates per group, False for aggregates over all rows. in_process: expressions without errors are
    also computed without Spark.
    """

    table: FuzzTable
    shape: Shape
    exprs: tuple[Expr, ...]
    settings: dict[str, str] = field(default_factory=dict)
    grouped: bool = True
    in_process: bool = True

    @property
    def ansi(self) -> bool:
        """True if the batch runs in ANSI mode, in which values out of range raise errors."""
        return is_ansi(self.settings)

    def sql(self) -> str:
        """Return the query: a row number ``id`` and the columns ``c0``, ``c1``, ...; for conditions, the rows that pass."""
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

    def with_exprs(self, exprs: Sequence[Expr]) -> Batch:
        """Return the same batch with other expressions."""
        return replace(self, exprs=tuple(exprs))

    def row_expressions(self, expr: Expr) -> tuple[Expr, ...]:
        """Return the parts of an expression that have one value per row.

        These are the arguments of aggregates and window functions; for other shapes, it is the expression itself.
        """
        return (expr,) if self.shape in ("projected", "condition") else expr.args

    def case(self, expr: Expr) -> Case:
        """Return a case with one of the expressions, which can be shrunk."""
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
    """Return the batch with this number of a seed. It does not depend on earlier batches, so a run can resume anywhere."""
    rng = Random(f"{seed}/{number}")
    table = _table(seed, number // _BATCHES_PER_TABLE)
    shape = rng.choice(_SHAPES)
    settings = dict(rng.choice(_SETTINGS))
    if rng.random() < 0.5:
        settings |= LENIENT
    settings[TIME_ZONE] = rng.choice(_ZONES)
    if rng.random() < 0.25 and shape != "window":  # frame bounds are literals only after constant folding
        settings |= _UNFOLDED
    can_raise = shape == "projected" and rng.random() < 0.5
    batch = Batch(table, shape, (), settings, rng.random() < 0.7, rng.random() < _IN_PROCESS_SHARE)
    left_out = rng.choice(_NOT_TOGETHER)
    exprs = (_expression(rng, batch, can_raise, left_out) for _ in range(_SIZES[shape]))
    return batch.with_exprs(list({expr.sql(): expr for expr in exprs}.values()))


@lru_cache(maxsize=16)
def _table(seed: int, number: int) -> FuzzTable:
    """Return the table that several batches share. It is one object, so the store writes it to disk once."""
    return wide_table(Random(f"{seed}/table/{number}"), f"t{seed}")


def _expression(rng: Random, batch: Batch, can_raise: bool, left_out: str) -> Expr:
    columns = [column for column in batch.table.columns() if column[0] not in (ID, GROUP)]
    depth = rng.choice((1, 2, 2, 3))
    if batch.shape == "condition":
        return call_of(rng, columns, "boolean", depth, can_raise)
    if batch.shape == "aggregate":
        call = random_aggregate(rng, columns, depth, can_raise=can_raise)
        while left_out in call.text:
            call = random_aggregate(rng, columns, depth, can_raise=can_raise)
        if rng.random() < 0.25 and not call.text.startswith("sort_array("):
            where = random_expr(rng, columns, "boolean", 1, can_raise)
            call = replace(
                call, text=f"{call.text} FILTER (WHERE {{{len(call.args)}}})", args=(*call.args, where)
            )
        return call
    if batch.shape == "window":
        keys = rng.choice(([], [GROUP]))
        return window_call(rng, columns, depth, keys, ID + rng.choice(("", " DESC")), can_raise)
    call = random_call(rng, columns, depth, can_raise)
    # PySpark does not return year-month intervals to the driver.
    return Expr("CAST({0} AS STRING)", "string", (call,)) if call.kind == NESTED["months"] else call

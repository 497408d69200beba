"""A few characters of a query cannot take all memory, or all time."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable

import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.errors import ExecutionError, SqlError, Unsupported
from kquery_spark.functions.core.distinct import per_distinct
from kquery_spark.functions.json.paths import parse_path
from kquery_spark.functions.registry import CallContext
from kquery_spark.functions.strings.like import _like_string
from kquery_spark.functions.strings.patterns import translate
from kquery_spark.functions.variant.paths import parse_variant_path
from kquery_spark.kernels.edit_distance import _by_cells, edit_distance
from kquery_spark.physical.expr import Program
from kquery_spark.run_control import RunCancelled, RunControl
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch
from kquery_spark.types.vector import Vector


@pytest.mark.parametrize(
    "call",
    [
        "repeat('x', 2147483647)", "repeat(s, 2000000000)", "repeat('x', a * 1000000000)", "space(2000000000)",
        "lpad(s, 2000000000, 'xy')", "rpad('a', 2000000000, 'x')",
        "repeat(repeat(repeat(repeat('xxxxxxxxxx', 100), 100), 100), 100)",
    ],
)  # fmt: skip
def test_strings_of_any_size_are_declined_before_they_are_made(call: str) -> None:
    context = kq.ExecutionContext()
    context.register_arrow("t", pa.table({"a": [1, 2], "s": ["ab", None]}))
    with pytest.raises(Unsupported, match="repeated or padded strings of more than 64 MiB"):
        context.sql(f"SELECT {call} AS x FROM t").to_arrow()


@pytest.mark.parametrize("call", ["lpad(s, 1000000, 'xy')", "rpad(s, 9000, '€')", "lpad(s, a * 9000, 'x')"])
def test_padded_strings_are_limited_for_all_rows_of_a_batch(call: str) -> None:
    context = kq.ExecutionContext()
    rows = 128 * 1024
    context.register_arrow("t", pa.table({"a": [1] * rows, "s": ["ab"] * rows}))
    with pytest.raises(Unsupported, match="of more than 1024 MiB in a batch"):
        context.sql(f"SELECT {call} AS x FROM t").to_arrow()


def test_a_constant_that_does_not_fit_into_a_batch_is_declined() -> None:
    context = kq.ExecutionContext()
    context.register_arrow("t", pa.table({"a": range(3000)}))
    with pytest.raises(Unsupported, match="copies of a constant string that take more than 2 GiB"):
        context.sql("SELECT repeat('x', 1000000) AS x FROM t").to_arrow()


def test_smaller_ones_are_made() -> None:
    context = kq.ExecutionContext()
    context.register_arrow("t", pa.table({"a": [1, 2], "s": ["ab", None]}))
    table = context.sql(
        "SELECT repeat(s, 3) r, repeat(s, -1) e, repeat(NULL, 3) n, length(lpad(s, 20000, 'xy')) p, "
        "length(repeat('x', 1000000)) big FROM t"
    ).to_arrow()
    assert table.to_pylist() == [
        {"r": "ababab", "e": "", "n": None, "p": 20000, "big": 1000000},
        {"r": None, "e": None, "n": None, "p": None, "big": 1000000},
    ]


@pytest.mark.parametrize("places", [-41, -100, -1000])
def test_decimals_are_rounded_to_any_power_of_ten_at_once(places: int) -> None:
    context = kq.ExecutionContext()
    digits = ["99.99", "-0.01", "0.00", None, "9" * 36 + ".99"]
    table = pa.table({"d": pa.array(digits).cast(pa.decimal128(38, 2))})
    context.register_arrow("t", table)
    start = time.process_time()
    rounded = context.sql(f"SELECT round(d, {places}) r, bround(d, {places}) b FROM t").to_arrow()
    for column in rounded.columns:
        assert column.to_pylist() == [0, 0, 0, None, 0]
    with pytest.raises(ExecutionError, match="NUMERIC_VALUE_OUT_OF_RANGE"):
        context.sql(f"SELECT ceil(d, {places}) FROM t").to_arrow()
    with pytest.raises(SqlError, match="powers of ten with more than 1000 zeros"):
        context.sql("SELECT round(d, -2147483648) FROM t").to_arrow()
    assert time.process_time() - start < 5


def test_like_with_patterns_of_a_column_takes_linear_time() -> None:
    start = time.process_time()
    assert not _like_string("a" * 100_000, "%a" * 50 + "%b", "\\")
    assert not _like_string("a" * 2_000, "%a_a" * 50 + "%b", "\\")
    assert time.process_time() - start < 5


def test_like_with_patterns_of_a_column_is_the_regular_expression() -> None:
    chance, matched = random.Random(1), 0
    for _ in range(20_000):
        value = "".join(chance.choice("ab_%\n") for _ in range(chance.randrange(8)))
        parts = [chance.choice(("a", "b", "%", "%", "_", r"\%", r"\_")) for _ in range(chance.randrange(7))]
        regex = "".join({"%": ".*", "_": ".", r"\%": "%", r"\_": "_"}.get(p, p) for p in parts)
        expected = re.fullmatch(regex, value, re.DOTALL) is not None
        assert _like_string(value, "".join(parts), "\\") == expected, (value, parts)
        matched += expected
    assert matched > 1000


@pytest.mark.parametrize(
    "pattern", ["(" * 500 + "a" + ")" * 500, "(" * 5000, "(((a?){1,100}){1,100}){1,100}"]
)
def test_patterns_too_deep_or_too_large_are_declined(pattern: str) -> None:
    with pytest.raises(Unsupported):
        translate(pattern)


def test_nested_repetitions_do_not_backtrack() -> None:
    context = kq.ExecutionContext()
    context.register_arrow("t", pa.table({"s": ["a" * 50_000]}))
    start = time.process_time()
    assert context.sql("SELECT s RLIKE '(a+)+b' AS x FROM t").to_arrow().to_pydict() == {"x": [False]}
    assert time.process_time() - start < 5


def test_a_long_array_is_searched_up_to_the_element_that_decides() -> None:
    """The last element raises; Spark stops at the one before it."""
    context = kq.ExecutionContext()
    numbers = list(range(200_000))
    context.register_arrow(
        "t", pa.table({"a": [numbers, None, [], [199_998], [199_997, 199_998, 199_999, None]]})
    )
    start = time.process_time()
    sql = "SELECT exists(a, x -> 10 DIV (199999 - x) = 10) AS e, forall(a, x -> 10 DIV (199999 - x) < 10) AS f FROM t"
    found = context.sql(sql).to_arrow().to_pydict()
    assert found == {"e": [True, None, False, True, True], "f": [False, None, True, False, False]}
    with pytest.raises(ExecutionError, match="DIVIDE_BY_ZERO"):
        context.sql("SELECT exists(a, x -> 10 DIV (199999 - x) = 11) AS e FROM t").to_arrow()
    assert time.process_time() - start < 5


def test_functions_of_lambdas_are_cancelled_between_calls_of_the_lambda() -> None:
    context = kq.ExecutionContext()
    context.register_arrow("t", pa.table({"a": [[1, 2], [3]]}))
    (named,) = context.sql("SELECT transform(a, x -> x + 1) AS b FROM t").analyzed.plan.exprs
    rows = pa.record_batch({"a": [[1, 2], [3]]})
    batch = Batch.from_arrow(rows, rows.schema)
    program = Program([named.expr], batch.schema)
    control = RunControl()
    assert control.controlled(program.run)(batch)[0].data.to_pylist() == [[2, 3], [4]]
    control.cancel("for a test")
    with pytest.raises(RunCancelled):
        control.controlled(program.run)(batch)


@pytest.mark.parametrize("parse", [parse_path, parse_variant_path])
def test_indexes_with_thousands_of_digits_raise_no_python_error(
    parse: Callable[[str], tuple[str | int, ...] | None],
) -> None:
    assert parse(f"$[{'0' * 5000}]") == (0,)
    assert parse(f"$[{'0' * 5000}2147483647].a") == (2147483647, "a")
    for digits in ("2147483648", "9" * 5000):
        with pytest.raises(Unsupported):
            parse(f"$[{digits}]")


def test_base_64_is_decoded_in_linear_time() -> None:
    context = kq.ExecutionContext()
    context.register_arrow("t", pa.table({"s": ["QUJD" * 500_000, None]}))
    start = time.process_time()
    decoded = context.sql(
        "SELECT octet_length(unbase64(s)) AS n, hex(unbase64(right(s, 4))) AS r FROM t"
    ).to_arrow()
    assert decoded.to_pydict() == {"n": [1_500_000, None], "r": ["414243", None]}
    assert time.process_time() - start < 5


def test_sort_array_declines_an_order_that_is_not_a_constant() -> None:
    context = kq.ExecutionContext()
    context.register_arrow("t", pa.table({"a": [[2, 1]], "is_ascending": [True]}))
    with pytest.raises(SqlError, match="in an order that is not a constant"):
        context.sql("SELECT sort_array(a, is_ascending) AS x FROM t")


def test_functions_of_distinct_values_are_cancelled_between_values() -> None:
    control, seen = RunControl(), []

    def evaluate(value: int) -> int:
        seen.append(value)
        control.cancel("for a test")
        return value

    column, context = Vector(t.LONG, pa.array(range(10_000))), CallContext(t.LONG, num_rows=10_000)
    with pytest.raises(RunCancelled):
        control.controlled(per_distinct)(evaluate, [column], context)
    assert len(seen) < 100


def test_the_distance_of_long_strings_takes_less_than_a_second_and_is_cancelled() -> None:
    chance = random.Random(3)
    for _ in range(500):
        left, right = ([chance.randrange(3) for _ in range(chance.randrange(80))] for _ in "ab")
        assert edit_distance(left, right) == _by_cells(left, right) == edit_distance(right, left)
    start = time.process_time()
    assert edit_distance(range(3000), range(1, 3001)) == 2
    assert time.process_time() - start < 1
    control = RunControl()
    control.cancel("for a test")
    with pytest.raises(RunCancelled):
        control.controlled(edit_distance)(range(3000), range(3000))

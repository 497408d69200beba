"""Results whose strings do not fit into one array: the batch is split, or an error names the function."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.errors import BatchTooLarge, Unsupported
from kquery_spark.expr import Case, Column, Literal
from kquery_spark.functions.calling import call
from kquery_spark.functions.registry import CallContext, function
from kquery_spark.physical.expr import Program
from kquery_spark.physical.operators import PhysicalPlan, TaskContext
from kquery_spark.types import names as t
from kquery_spark.types import sizes
from kquery_spark.types.batch import Batch, run_in_parts
from kquery_spark.types.vector import Vector, fill

_ROWS = 1000
_LONG = "z" * 3_000_000


def _context() -> kq.ExecutionContext:
    context = kq.ExecutionContext()
    strings = [None if i % 9 == 0 else f"{i}'\\\"x\tx," * (i % 4) for i in range(_ROWS)]
    context.register_arrow("t", pa.table({"i": range(_ROWS), "s": strings}))
    return context


@pytest.fixture
def small_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the limit for the bytes of the strings of an array."""
    monkeypatch.setattr(sizes, "MAX_STRING_BYTES", 8_000)


_CALLS = [
    "replace(s, 'x', 'yyy')",
    "regexp_replace(s, 'x', 'yyy')",
    "regexp_replace(s, '(x)', '$1$1')",
    "quote(s)",
    "to_json(struct(s))",
    "to_json(array(s))",
    "to_json(map('k', s))",
    "to_csv(struct(s))",
    "date_format(date_add(DATE'2020-01-01', i), 'yyyy-MM-dd')",
    "array(s) > array('5')",
]


@pytest.mark.parametrize("expression", _CALLS)
def test_a_batch_whose_results_are_too_large_is_split(
    expression: str, request: pytest.FixtureRequest
) -> None:
    context = _context()
    sql = f"SELECT i, {expression} AS x FROM t"
    expected = context.sql(sql).to_arrow()
    assert expected["x"].num_chunks == 1
    request.getfixturevalue("small_arrays")
    split = context.sql(sql).to_arrow()
    assert split["x"].num_chunks > 1
    assert split.combine_chunks() == expected.combine_chunks()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(length(replace(s, 'x', 'yyy'))) AS n, min(quote(s)) AS q FROM t",
        "SELECT i % 7 AS k, max(replace(s, 'x', 'yyy')) AS m FROM t GROUP BY i % 7",
        "SELECT i FROM t WHERE replace(s, 'x', 'yyy') LIKE '%yyy,%yyy%'",
        "SELECT i, e FROM t LATERAL VIEW explode(split(replace(s, 'x', 'yyy'), 'y')) u AS e",
    ],
)
def test_aggregates_filters_and_generators_split_batches(sql: str, request: pytest.FixtureRequest) -> None:
    context = _context()
    expected = context.sql(sql).to_arrow().to_pylist()
    assert expected
    request.getfixturevalue("small_arrays")
    assert context.sql(sql).to_arrow().to_pylist() == expected


@pytest.mark.parametrize("expression", ["replace(s, 'x', '{0}')", "regexp_replace(s, '(x)', '$1{0}')"])
def test_a_replacement_that_is_too_large_for_one_row_is_declined(expression: str) -> None:
    """Arrow does not check the size, and its kernel for ``replace`` can end the process by a segmentation fault."""
    context = kq.ExecutionContext()
    context.register_arrow("t", pa.table({"s": ["x" * 1_000_000]}))
    with pytest.raises(Unsupported, match="replacements in the strings of a batch that take more than 2 GiB"):
        context.sql(f"SELECT {expression.format('y' * 2200)} AS x FROM t").to_arrow()


def test_repeated_arrays_and_maps_with_too_many_elements_are_declined() -> None:
    """Arrow does not check the number of elements, and the offsets would become negative."""
    rows = 2**31 // 10**6 + 1
    nulls = [None] * 10**6
    for scalar in (
        pa.scalar(nulls, pa.list_(pa.null())),
        pa.scalar({"a": nulls}, pa.struct([("a", pa.list_(pa.null()))])),
        pa.scalar([(1, None)] * 10**6, pa.map_(pa.int8(), pa.null())),
    ):
        with pytest.raises(BatchTooLarge, match=r"with 2\^31 elements or more"):
            fill(scalar, rows)


@pytest.mark.usefixtures("small_arrays")
def test_repeated_structs_with_too_many_bytes_are_declined() -> None:
    scalar = pa.scalar(
        {"a": 1, "s": "x" * 100, "n": None}, pa.struct([("a", t.INT), ("s", t.STRING), ("n", t.STRING)])
    )
    assert fill(scalar, 80).to_pylist() == [scalar.as_py()] * 80
    with pytest.raises(BatchTooLarge, match="copies of a constant string"):
        fill(scalar, 81)


def test_errors_of_arrow_name_the_function() -> None:
    nulls, long = Vector(t.STRING, pa.nulls(_ROWS, t.STRING)), Vector(t.STRING, pa.scalar(_LONG))
    short = Vector(t.STRING, pa.array(["a"] * _ROWS))
    context = CallContext(t.STRING, num_rows=_ROWS)
    with pytest.raises(BatchTooLarge, match=r"^coalesce with a result of more than 2 GiB"):
        call(function("coalesce"), [nulls, long], context)
    with pytest.raises(BatchTooLarge, match=r"^concat with a result of more than 2 GiB"):
        call(function("concat"), [short, long], context)


def test_errors_of_arrow_name_case() -> None:
    schema = pa.schema([("b", t.BOOL), ("s", t.STRING)])
    batch = Batch(schema, (pa.array([True] * _ROWS), pa.array(["a"] * _ROWS)), _ROWS)
    case = Case(((Column("b", t.BOOL, False), Literal(_LONG, t.STRING)),), Column("s", t.STRING, False))
    with pytest.raises(BatchTooLarge, match=r"^CASE, IF, or COALESCE with a result"):
        Program([case], schema).run(batch)


class FailingExec(PhysicalPlan):
    """An operator that builds an array of more than 2 GiB."""

    def execute(self, task: TaskContext) -> Iterator[Batch]:
        yield Batch.empty(pa.schema([]))
        raise pa.ArrowCapacityError("array cannot contain more than 2147483646 bytes")


def test_an_operator_is_named_if_no_function_is() -> None:
    with pytest.raises(Unsupported, match="FailingExec with a result of more than 2 GiB in a batch"):
        list(FailingExec().run(TaskContext()))


def test_parts_of_a_batch_are_consecutive_and_other_errors_are_raised() -> None:
    schema = pa.schema([("i", t.LONG)])
    batch = Batch(schema, (pa.array(range(10)),), 10)

    def at_most_three(part: Batch) -> list[int]:
        if part.num_rows > 3:
            raise BatchTooLarge("too large for a test")
        return list(part.columns[0].to_pylist())

    assert [rows for _, rows in run_in_parts(at_most_three, batch, repeatable=True)] == [
        [0, 1, 2],
        [3, 4],
        [5, 6, 7],
        [8, 9],
    ]

    def fails(part: Batch) -> None:
        raise pa.ArrowInvalid("overflow")

    with pytest.raises(pa.ArrowInvalid):
        list(run_in_parts(fails, batch, repeatable=True))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count_calls(replace(s, 'x', 'yyy')) AS x, quote(repeat(s, 9)) AS q FROM t",
        "SELECT i FROM t WHERE quote(repeat(concat(s, CAST(count_calls(s) AS STRING)), 9)) > 'a'",
        "SELECT max(count_calls(s)) AS x, max(quote(repeat(s, 9))) AS q FROM t",
        "SELECT i, e FROM t LATERAL VIEW explode(array(CAST(count_calls(s) AS STRING), quote(repeat(s, 9)))) u AS e",
    ],
)
@pytest.mark.usefixtures("small_arrays")
def test_nondeterministic_functions_do_not_see_rows_twice(sql: str) -> None:
    """A function that counts its calls would skip the numbers of the rows of a batch that failed."""
    context = _context()

    def count_calls(strings: pa.Array) -> pa.Array:
        return pa.array(range(1, len(strings) + 1))

    context.register_function("count_calls", count_calls, "bigint", deterministic=False)
    with pytest.raises(BatchTooLarge):
        context.sql(sql).to_arrow()

"""The worked examples about sources, plans, columns and the DataFrame API, with the answers they state."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from textwrap import dedent

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark import col, lit
from kquery_spark.errors import SqlError
from tests.inventory.conftest import COLUMNS


def printed(frame: object) -> str:
    return f"\n{frame}\n"


def test_a_plan_prints_a_node_a_line(context: kq.ExecutionContext):
    frame = context.table("employee").filter(col("state") == "CO").select("id", "first_name")
    assert printed(frame) == dedent("""
        Projection: #id, #first_name
          Filter: #state = 'CO'
            Scan: employee; projection=None
        """)


def test_text_is_parenthesised_where_it_would_be_ambiguous(context: kq.ExecutionContext):
    employee = context.table("employee")
    one = employee.select(((col("id") + 1) * col("id")).alias("x"))
    other = employee.select((col("id") + 1 * col("id")).alias("x"))
    assert str(one).startswith("Projection: (#id + 1) * #id AS x")
    assert str(other).startswith("Projection: #id + (1 * #id) AS x")


def test_an_aggregation_prints_its_groups_and_aggregates(context: kq.ExecutionContext):
    salary = col("salary")
    made = context.table("employee").aggregate(
        [col("state")], [kq.min(salary), kq.max(salary), kq.count(salary)]
    )
    assert printed(made) == dedent("""
        Aggregate: groupExpr=[#state], aggregateExpr=[MIN(#salary), MAX(#salary), COUNT(#salary)]
          Scan: employee; projection=None
        """)


def test_the_scan_reads_what_the_query_names_and_the_root_keeps_its_columns(context: kq.ExecutionContext):
    frame = context.table("employee").filter(col("state") == "CO").select("id", "first_name", "last_name")
    optimized = frame.explain().split("== Optimized plan ==")[1]
    # the filter went into the scan, which reads #state for it
    assert "projection=[id, first_name, last_name]; filters=[#state = 'CO']" in optimized
    assert frame.to_arrow().column_names == ["id", "first_name", "last_name"]
    everything = context.table("employee")
    assert everything.to_arrow().column_names == everything.columns


def test_the_book_s_data_frame(context: kq.ExecutionContext):
    frame = (
        context.table("employee")
        .filter(col("state") == lit("CO"))
        .select("id", "first_name", "last_name", "state", "salary", (col("salary") * lit(0.1)).alias("bonus"))
        .filter(col("bonus") > lit(1000))
    )
    john = {
        "id": 3,
        "first_name": "John",
        "last_name": "Travis",
        "state": "CO",
        "salary": 11500.0,
        "bonus": 1150.0,
    }
    assert frame.collect() == [john]


def test_an_unknown_name_is_an_error_with_the_names_there_are(context: kq.ExecutionContext):
    with pytest.raises(
        SqlError, match=r"unknown column nosuch; the columns are employee\.id, employee\.first_name"
    ):
        context.sql("SELECT nosuch FROM employee").collect()


def test_an_ambiguous_name_is_an_error(context: kq.ExecutionContext):
    with pytest.raises(SqlError, match=r"AMBIGUOUS_REFERENCE.*a\.id, b\.id"):
        context.sql("SELECT id FROM employee a JOIN employee b ON a.id = b.id").collect()


def test_a_self_join_resolves(context: kq.ExecutionContext):
    found = context.sql(
        "SELECT a.id AS x, b.id AS y FROM employee a JOIN employee b ON a.id = b.id + 1 ORDER BY x"
    )
    assert found.collect() == [{"x": 2, "y": 1}, {"x": 3, "y": 2}, {"x": 4, "y": 3}]


def test_types_come_from_both_operands_and_names_from_the_expression(context: kq.ExecutionContext):
    table = context.sql(
        "SELECT id + 1, id / 2, id * salary, id % 2, id + 1L, 1.5 + id FROM employee"
    ).to_arrow()
    assert table.column_names == [
        "(id + 1)",
        "(id / 2)",
        "(id * salary)",
        "(id % 2)",
        "(id + 1)",
        "(1.5 + id)",
    ]
    expected = [pa.int32(), pa.float64(), pa.float64(), pa.int32(), pa.int64(), pa.decimal128(12, 1)]
    assert table.schema.types == expected


def test_two_aggregates_of_one_kind_have_names_of_their_own(context: kq.ExecutionContext):
    made = context.table("employee").aggregate(
        [], [kq.max(col("salary")), kq.max(col("id")), kq.max(col("state"))]
    )
    assert made.collect() == [{"max(salary)": 12000.0, "max(id)": 4, "max(state)": "CO"}]


def test_avg_is_fractional_sum_widens_and_count_is_bigint(context: kq.ExecutionContext):
    table = context.sql("SELECT avg(id) a, sum(id) s, count(id) c FROM employee").to_arrow()
    assert table.schema.types == [pa.float64(), pa.int64(), pa.int64()]
    assert table.to_pylist() == [{"a": 2.5, "s": 10, "c": 4}]
    assert not table.schema.field("c").nullable
    context.register_arrow("big", pa.table({"x": pa.array([2**31 - 1] * 3, pa.int32())}))
    assert context.sql("SELECT sum(x) AS s FROM big").collect() == [{"s": 3 * (2**31 - 1)}]


def test_a_date_minus_an_interval(context: kq.ExecutionContext):
    days = [dt.date(1998, 9, 23), dt.date(1998, 9, 24), dt.date(1998, 9, 25), None]
    context.register_arrow("orders", pa.table({"ship_date": days}))
    found = context.sql(
        "SELECT ship_date FROM orders WHERE ship_date <= date '1998-12-01' - interval '68 days'"
    )
    assert [r["ship_date"] for r in found.collect()] == days[:2]


def test_counting_rows_reads_no_column(context: kq.ExecutionContext):
    frame = context.sql("SELECT count(*) AS n FROM employee")
    assert "projection=[]" in frame.explain()
    assert frame.collect() == [{"n": 4}]


def test_csv_with_quoted_commas_and_empty_fields(context: kq.ExecutionContext):
    found = context.sql("SELECT job_title, state FROM employee WHERE id > 2 ORDER BY id").collect()
    assert found == [
        {"job_title": "Manager, Software", "state": "CO"},
        {"job_title": "Defensive End", "state": None},
    ]


def test_csv_without_header_and_schema_numbers_its_fields(tmp_path: Path):
    (tmp_path / "t.csv").write_text('1;"a;b"\n2;"c\nd"\n')
    context = kq.ExecutionContext()
    context.register_csv("t", tmp_path / "t.csv", has_header=False, sep=";", multiLine=True)
    assert context.table("t").collect() == [
        {"field_1": 1, "field_2": "a;b"},
        {"field_1": 2, "field_2": "c\nd"},
    ]


def test_csv_types_are_inferred(employee_csv: Path):
    context = kq.ExecutionContext()
    context.register_csv("employee", employee_csv)
    assert [f"{n} {d}" for n, d in context.table("employee").dtypes] == COLUMNS.replace(
        "double", "int"
    ).split(", ")


def test_a_table_in_memory_is_scanned_twice():
    context = kq.ExecutionContext()
    context.register_arrow("t", pa.table({"x": [1, 2]}))
    assert context.sql("SELECT a.x FROM t a JOIN t b ON a.x = b.x ORDER BY a.x").collect() == [
        {"x": 1},
        {"x": 2},
    ]
    assert context.table("t").count() == context.table("t").count() == 2


def test_partition_columns_of_a_directory_prune_its_files(tmp_path: Path):
    for month in range(1, 13):
        directory = tmp_path / "year=2019" / f"month={month}"
        directory.mkdir(parents=True)
        pq.write_table(pa.table({"fare": [month, 10 * month]}), directory / "trips.parquet")
    context = kq.ExecutionContext()
    context.register_parquet("trips", tmp_path)
    frame = context.sql("SELECT year, month, max(fare) AS m FROM trips WHERE month = 3 GROUP BY year, month")
    assert frame.collect() == [{"year": 2019, "month": 3, "m": 30}]
    assert "splits=1" in frame.explain()
    # each month on its own, combined by a second query: counts are added up, averages are sums and counts
    by_month = "SELECT month, count(*) AS n, sum(fare) AS s, min(fare) AS lo FROM trips GROUP BY month"
    combined = context.sql(f"SELECT sum(n) AS n, sum(s) / sum(n) AS a, min(lo) AS lo FROM ({by_month})")
    assert (
        combined.collect() == context.sql("SELECT count(*) n, avg(fare) a, min(fare) lo FROM trips").collect()
    )

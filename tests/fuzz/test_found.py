"""What the fuzzer found once, as small as it got."""

from math import copysign

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from kquery_spark import ExecutionContext, kquery_plan
from kquery_spark.fuzz.settings import applied
from kquery_spark.verify import compare_tables


@pytest.mark.parametrize(
    "condition", ["x = 0.0D", "x <=> 0.0D", "x IN (0.0D, 7.0D)", "x >= 0.0D", "x < 0.0D"]
)
def test_both_zeros_are_equal_whatever_the_row_groups_hold(spark, tmp_path, condition):
    """Spark says so, too, unless it skips row groups by their dictionaries, where 0.0 is not -0.0."""
    for number, values in enumerate([[-0.0], [-0.0, 1.0], [0.0], [-1.0]]):
        pq.write_table(pa.table({"x": values}), tmp_path / f"{number}.parquet")
    reader = spark.read.option("parquet.filter.dictionary.enabled", "false")
    reader.parquet(str(tmp_path)).createOrReplaceTempView("zeros")
    frame = spark.sql(f"SELECT * FROM zeros WHERE {condition}")
    fast = frame.transform(kquery_plan, when="always", fallback="error")
    assert compare_tables(frame.toArrow(), fast.toArrow()) == []


@pytest.mark.parametrize("ansi", [True, False])
def test_the_size_of_null_is_minus_one_outside_ansi_mode(spark, ansi):
    table = pa.table({"a": pa.array([[1, None], None], pa.list_(pa.int32()))})
    context = ExecutionContext(ansi=ansi)
    context.register_arrow("t", table)
    sql = "SELECT size(a) AS x, cardinality(a) AS y, array_size(a) AS z FROM t"
    with applied(spark, {"spark.sql.ansi.enabled": str(ansi).lower()}):
        spark.createDataFrame(table).createOrReplaceTempView("t")
        expected = spark.sql(sql).toArrow()
    assert compare_tables(expected, context.sql(sql).to_arrow()) == []


@pytest.mark.parametrize("values", [[0.0, -0.0], [-0.0, 0.0, 0.0], [0.0, -0.0, 1.0]])
def test_zeros_of_orc_files_keep_their_signs(spark, tmp_path, values):
    """ORC's reader gives a batch of zeros the sign of the first (docs/trust.md, "Known exceptions")."""
    orc.write_table(pa.table({"x": values}), tmp_path / "t.orc")
    frame = spark.read.orc(str(tmp_path)).selectExpr("csc(x) AS y")
    fast = frame.transform(kquery_plan, when="always", fallback="error")
    assert sorted(row.y > 0 for row in fast.collect()) == sorted(copysign(1, value) > 0 for value in values)
    if 1.0 in values:
        assert compare_tables(frame.toArrow(), fast.toArrow()) == []


def test_a_subquery_that_is_null_reads_orc_files(spark, tmp_path):
    """Spark fails while it looks for NULL in ORC files, with their filters pushed down."""
    orc.write_table(pa.table({"a": pa.array([1, 2], pa.int16())}), tmp_path / "t.orc")
    rows = spark.read.orc(str(tmp_path)).where("a >= (SELECT max(b) FROM VALUES (1S) AS t(b) WHERE b > 2)")
    answer = rows.transform(kquery_plan, when="always", fallback="error").collect()
    with applied(spark, {"spark.sql.orc.filterPushdown": "false"}):
        assert answer == rows.collect() == []


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Asia/Kolkata", "Africa/Monrovia"])
def test_offsets_of_old_times_have_seconds(spark, tmp_path, zone):
    moments = [-11_676_096_000, -2_826_000_000, -2_147_483_648, 1_577_836_800]
    pq.write_table(pa.table({"s": moments}), tmp_path / "t.parquet")
    with applied(spark, {"spark.sql.session.timeZone": zone}):
        rows = spark.read.parquet(str(tmp_path)).selectExpr("timestamp_seconds(s) AS t")
        frame = rows.selectExpr("to_json(struct(t)) AS j", "to_csv(struct(t)) AS c")
        expected = frame.toArrow()
        assert any(len(text.as_py() or "") > len("1880-01-01T00:00:00.000+00:00") for text in expected["c"])
        fast = frame.transform(kquery_plan, when="always", fallback="error").toArrow()
    assert compare_tables(expected, fast) == []


@pytest.mark.parametrize("ansi", [True, False])
@pytest.mark.parametrize(
    "expression",
    ["i = f", "i + f", "l * f", "i / f", "coalesce(f, i)", "i IN (f, 2)", "greatest(i, f)", "pow(f, i % 3)", "array(i, f)",
     "nullif(i, f)", "i + f + d", "if(i > 0, f, l)", "i BETWEEN f AND l", "i <=> f", "f - 1"],
)  # fmt: skip
def test_integers_beside_floats_are_floats_outside_ansi_mode(spark, expression, ansi):
    table = pa.table({
        "i": pa.array([16777217, -2147483648, None], pa.int32()), "l": [2**53 + 1, 3, 5],
        "f": pa.array([16777216.0, 1.5, 2.5], pa.float32()), "d": [0.1, 0.2, 0.3],
    })  # fmt: skip
    context = ExecutionContext(ansi=ansi)
    context.register_arrow("t", table)
    sql = f"SELECT {expression} AS x FROM t"
    with applied(spark, {"spark.sql.ansi.enabled": str(ansi).lower()}):
        spark.createDataFrame(table).createOrReplaceTempView("t")
        expected = spark.sql(sql).toArrow()
    assert compare_tables(expected, context.sql(sql).to_arrow()) == []


@pytest.mark.parametrize("text", ["lower(upper(s))", "upper(lower(s))", "upper(upper(s))", "lower(lower(s))"])
def test_only_the_outer_change_of_case_counts(spark, tmp_path, text):
    table = pa.table({"s": ["ß", "İ", "aΣ", None]})
    pq.write_table(table, tmp_path / "t.parquet")
    context = ExecutionContext()
    context.register_arrow("t", table)
    frame = spark.read.parquet(str(tmp_path)).selectExpr(f"{text} AS x")
    assert compare_tables(frame.toArrow(), context.sql(f"SELECT {text} AS x FROM t").to_arrow()) == []
    rule = "org.apache.spark.sql.catalyst.optimizer.SimplifyCaseConversionExpressions"
    with applied(spark, {"spark.sql.optimizer.excludedRules": rule}):
        frame = spark.read.parquet(str(tmp_path)).selectExpr(f"{text} AS x")
        fast = frame.transform(kquery_plan, when="always", fallback="error")
        assert compare_tables(frame.toArrow(), fast.toArrow()) == []


@pytest.mark.parametrize("ansi", [True, False])
@pytest.mark.parametrize("text", ["try_multiply(a, a) * 3", "try_add(a, a) + 1", "try_multiply(b, b) * 3"])
def test_operators_take_the_mode_of_the_outermost(spark, tmp_path, text, ansi):
    table = pa.table({"a": pa.array([-(2**31), 3], pa.int32()), "b": pa.array([5, None], pa.int32())})
    pq.write_table(table, tmp_path / "t.parquet")
    context = ExecutionContext(ansi=ansi)
    context.register_arrow("t", table)

    def answer(run):
        try:
            return run().column(0).to_pylist()
        except Exception as error:
            return "ARITHMETIC_OVERFLOW" in str(error)

    with applied(spark, {"spark.sql.ansi.enabled": str(ansi).lower()}):
        expected = answer(spark.read.parquet(str(tmp_path)).selectExpr(text).toArrow)
    assert answer(context.sql(f"SELECT {text} FROM t").to_arrow) == expected
    assert expected is not False


def test_the_size_of_a_map_of_equal_keys_is_an_error(spark, tmp_path):
    table = pa.table({"a": [24], "b": [-1]})
    pq.write_table(table, tmp_path / "t.parquet")
    frame = spark.read.parquet(str(tmp_path)).selectExpr("size(map(bin(a), b, bin(a), 1)) AS x")
    context = ExecutionContext()
    context.register_arrow("t", table)
    fast = frame.transform(kquery_plan, when="always")
    for run in (
        frame.collect,
        fast.collect,
        context.sql("SELECT size(map(bin(a), b, bin(a), 1)) FROM t").to_arrow,
    ):
        with pytest.raises(Exception, match="DUPLICATED_MAP_KEY"):
            run()
    same = "size(map(a, b, a, 1)) AS x"  # Spark counts without a look at the keys
    frame = spark.read.parquet(str(tmp_path)).selectExpr(same)
    assert compare_tables(frame.toArrow(), context.sql(f"SELECT {same} FROM t").to_arrow()) == []

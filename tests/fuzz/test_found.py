"""What the fuzzer found once, as small as it got."""

from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import ArithmeticException as SparkArithmeticException

from kquery_spark import ExecutionContext, kquery_plan
from kquery_spark.errors import ExecutionError
from kquery_spark.fuzz.settings import applied
from kquery_spark.verify import compare_tables


@pytest.mark.parametrize("kind", ["LEFT SEMI", "INNER", "FULL"])
def test_decimals_too_wide_for_64_bits_find_no_narrow_partner(spark, tmp_path, kind):
    narrow = pa.array([Decimal("1.25"), None, Decimal("-7.00")], pa.decimal128(9, 2))
    big = "9999999999999999.9999"
    wide = pa.array([Decimal(big), Decimal("1.2500"), None, Decimal(f"-{big}")], pa.decimal128(20, 4))
    for name, column in (("n", narrow), ("w", wide)):
        pq.write_table(pa.table({name: column}), tmp_path / f"{name}.parquet")
        spark.read.parquet(str(tmp_path / f"{name}.parquet")).createOrReplaceTempView(f"t_{name}")
    for sql in (f"SELECT * FROM t_n {kind} JOIN t_w ON n = w", f"SELECT * FROM t_w {kind} JOIN t_n ON n = w"):
        for broadcast in ("0", "10m"):
            spark.conf.set("spark.kquery.broadcastBytes", broadcast)
            try:
                expected = spark.sql(sql).toArrow()
                actual = spark.sql(sql).transform(kquery_plan, when="always").toArrow()
            finally:
                spark.conf.unset("spark.kquery.broadcastBytes")
            assert compare_tables(expected, actual) == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT nullif('', 'AB') AS x FROM t",
        "SELECT (('a' LIKE '_b%') AND b) AS x FROM t",
        "SELECT named_struct('x', 1, 's', b).x AS x, named_struct('x', 1, 's', b).s AS s FROM t",
    ],
)
def test_folding_a_constant_does_not_change_what_may_be_null(spark, sql):
    table = pa.table({"b": [True, None]})
    context = ExecutionContext()
    context.register_arrow("t", table)
    spark.createDataFrame(table).createOrReplaceTempView("t")
    assert compare_tables(spark.sql(sql).toArrow(), context.sql(sql).to_arrow()) == []
    assert context.sql("SELECT b, b FROM t").to_arrow().column_names == ["b", "b"]
    assert context.sql("SELECT count(*) AS n FROM t WHERE false").to_arrow().to_pydict() == {"n": [0]}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT (i + i) - NULL AS x FROM t",
        "SELECT NULL * (i + i) AS x, 1 / 0 > CAST(NULL AS DOUBLE) AS y, pmod(i + i, CAST(NULL AS INT)) AS z FROM t",
        "SELECT i + i IS NULL AND false AS x FROM t",
        "SELECT i FROM t WHERE i IS NULL OR (i + i > 0 AND false)",
        "SELECT true OR i + i > 0 AS x, i + i > 0 OR true AS y FROM t",
    ],
)
def test_what_would_raise_beside_a_null_or_a_settled_condition_is_not_asked(spark, tmp_path, sql):
    """Of files, as Spark evaluates rows that are in its plan before it simplifies."""
    file = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"i": pa.array([2**31 - 1, None, 1], pa.int32())}), file)
    context = ExecutionContext()
    context.register_parquet("t", file)
    spark.read.parquet(file).createOrReplaceTempView("t")
    assert compare_tables(spark.sql(sql).toArrow(), context.sql(sql).to_arrow()) == []


@pytest.mark.parametrize(
    "value",
    [
        "CASE WHEN true THEN 1Y END",
        "CASE WHEN b THEN 3 WHEN true THEN 1Y ELSE NULL END",
        "CASE WHEN b THEN NULL WHEN true THEN 1Y END",
        "CASE WHEN true THEN b ELSE true END",
        "IF(true, 1, NULL)",
        "CASE WHEN true THEN 1 ELSE sum(CAST(b AS INT)) END",
    ],
)
def test_what_comes_after_a_true_condition_makes_nothing_nullable(spark, value):
    table = pa.table({"b": [True, None]})
    context = ExecutionContext()
    context.register_arrow("t", table)
    spark.createDataFrame(table).createOrReplaceTempView("t")
    sql = f"SELECT {value} AS x FROM t"
    assert compare_tables(spark.sql(sql).toArrow(), context.sql(sql).to_arrow()) == []


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


@pytest.mark.parametrize("operation", ["EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL", "UNION"])
@pytest.mark.parametrize(("value", "column"), [("named_struct('x', 1, 's', 'a')", "s"), ("array(1)", "a")])
def test_set_operations_hold_null_inside_where_sparks_do(spark, tmp_path, operation, value, column):
    fields = pa.struct([("x", pa.int32()), ("s", pa.string())])
    rows = {
        "s": pa.array([{"x": 1, "s": "a"}, None, {"x": None, "s": "a"}], fields),
        "a": [[1, None], None, [1]],
    }
    file = str(tmp_path / "t.parquet")
    pq.write_table(pa.table(rows).cast(pa.schema([("s", fields), ("a", pa.list_(pa.int32()))])), file)
    spark.read.parquet(file).createOrReplaceTempView("t")
    context = ExecutionContext()
    context.register_parquet("t", file)
    for left, right in ((value, column), (column, value), (column, column)):
        sql = f"SELECT {left} AS u FROM t {operation} SELECT {right} FROM t"
        expected, actual = spark.sql(sql).toArrow(), context.sql(sql).to_arrow()
        assert (compare_tables(expected, actual), actual.schema.types) == ([], expected.schema.types), sql


@pytest.mark.parametrize(
    "condition",
    [
        "array_contains(array(1, NULL), i)",
        "array_contains(array_repeat(i, 2), 1) OR size(array(1)) > i",
        "named_struct('x', 1).x = i",
    ],
)
def test_nested_constants_beside_no_rows(spark, tmp_path, condition):
    """Arrow repeats no list zero times."""
    file = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"i": pa.array([], pa.int32()), "s": pa.array([], pa.string())}), file)
    frame = spark.read.parquet(file).where(condition)
    fast = kquery_plan(frame, when="always", fallback="error")
    assert fast is not frame
    assert compare_tables(frame.toArrow(), fast.toArrow()) == []


@pytest.mark.parametrize(
    "value",
    [
        "try_add(1, i + i)",
        "try_multiply(i, 2 * i)",
        "1 + try_add(i, 1)",
        "i + 1 + (-1)",
        "-1 + i + 1",
        "(-1 + i) + (i DIV i)",
        "0 * (i * 2)",
        "1 * i * i",
        "i + 2147483647 + 1",
        "try_add(2147483647 + 1, i)",
        "try_add(2147483647, i) + 1",
        "try_add(i + 2147483647, 1)",
        "try_multiply(2147483647 * i, 2)",
        "try_add(1, try_multiply(i, 2)) + 1",
        "try_add(1, CAST(i AS BIGINT) + i)",
        "transform(array(i), e -> e + 1 + (-1))",
        "sum(i + 1 + (-1))",
    ],
)
def test_what_overflows_in_a_sum_or_product_of_whole_numbers(spark, tmp_path, value):
    """Catalyst gathers the constants of sums and products, whose operators all take the mode of the outermost."""
    file = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"i": pa.array([2**31 - 1, None], pa.int32())}), file)
    context = ExecutionContext()
    context.register_parquet("t", file)
    spark.read.parquet(file).createOrReplaceTempView("t")
    sql = f"SELECT {value} AS x FROM t"
    try:
        expected = spark.sql(sql).toArrow()
    except SparkArithmeticException:
        with pytest.raises(ExecutionError, match="OVERFLOW"):
            context.sql(sql).to_arrow()
    else:
        assert compare_tables(expected, context.sql(sql).to_arrow()) == []


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

"""Random expressions through our own SQL against Spark: a hundred to a query, errors found by halves."""

from __future__ import annotations

import struct
from random import Random

import py4j.protocol
import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.errors import ExecutionError, PlanError, SqlError, Unsupported
from tests.conftest import uncompiled
from tests.functions.oracle import error_class, unconverted_errors
from tests.fuzz.grammar import LEAVES, expression

ROWS = """SELECT * FROM VALUES
 (true, 1, -7, 5L, 1.5D, 12.34BD, 'abc', 'a,b', DATE'2020-02-29', TIMESTAMP'2021-03-28 01:30:00.123456', array(1, 2, NULL), array('a', 'b'),
  array(0.0D, 1.5D), named_struct('x', 1, 's', 'p')),
 (false, 2147483647, 0, -9223372036854775808L, double('NaN'), -0.01BD, '', ' 12 ', DATE'1969-12-31', TIMESTAMP'1960-01-01 00:00:00', array(), array(),
  array(double('NaN'), NULL, -0.0D), named_struct('x', NULL, 's', 'é')),
 (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
 (true, -2147483648, 3, 9223372036854775807L, -0.0D, 9999999.99BD, '日本, x', 'ABC', DATE'1582-10-15', TIMESTAMP'2038-01-19 03:14:08', array(NULL, 3),
  array(NULL, 'é'), array(), named_struct('x', -5, 's', NULL)),
 (false, 12, 12, 250L, double('-infinity'), 0.00BD, '2020-01-01 10:00', '-3', DATE'9999-12-31', TIMESTAMP'2024-02-29 12:00:00', array(5, 5, -1), array('', 'a'),
  array(1.5D, 1.5D), NULL)
 AS t(b, i, j, l, f, m, s, u, d, ts, ai, at, af, st)"""
COUNT = 80


def shown(value: object) -> object:
    """A value that compares exactly: the bits of floats with one NaN, nested ones part by part."""
    if isinstance(value, float):
        return "NaN" if value != value else struct.pack(">d", value)
    if isinstance(value, list | tuple):
        return [shown(part) for part in value]
    return {k: shown(v) for k, v in value.items()} if isinstance(value, dict) else value


def close(a: object, b: object) -> bool:
    """Equal, or doubles in the last bits (of logarithms and their like, as Java computes them)."""
    if isinstance(a, float) and isinstance(b, float):
        return shown(a) == shown(b) or abs(a - b) <= 1e-12 * max(abs(a), abs(b))
    return shown(a) == shown(b)


def values(column: pa.ChunkedArray) -> list[object]:
    """Python values; dates and timestamps as numbers, for Python's own end with the year 9999."""
    dtype = column.type
    if pa.types.is_date32(dtype):
        column = column.cast(pa.int32())
    return column.cast(pa.int64()).to_pylist() if pa.types.is_timestamp(dtype) else column.to_pylist()


def by_spark(spark, texts: list[str]) -> list[pa.ChunkedArray | str]:
    """Each column, or the class of the error that it raises."""
    try:
        query = ", ".join(f"{text} AS c{n}" for n, text in enumerate(texts))
        return list(spark.sql(f"SELECT {query} FROM fuzz_rows").toArrow().columns)
    except Exception as error:
        if len(texts) == 1:
            return [error_class(error)]
    # one in three raises: found row by row on Spark's bound expressions, which takes no job for each
    rows = spark.sql("SELECT * FROM fuzz_rows")._jdf.queryExecution().executedPlan().executeCollect()
    raised = {text: error for text in texts if (error := raises(spark, text, list(rows)))}
    good = [text for text in texts if text not in raised]
    half = len(good) // 2 if len(good) == len(texts) else len(good)
    parts = [part for part in (good[:half], good[half:]) if part]
    found = dict(zip(good, [c for part in parts for c in by_spark(spark, part)], strict=True))
    return [raised.get(text) or found[text] for text in texts]


def raises(spark, text: str, rows: list) -> str | None:
    """The class of the error of an expression over any of the rows."""
    expressions = spark.sparkContext._jvm.org.apache.spark.sql.catalyst.expressions
    attributes = getattr(getattr(expressions, "package$"), "MODULE$").AttributeSeq
    with unconverted_errors():
        try:
            plan = spark.sql(f"SELECT {text} AS c, * FROM fuzz_rows")._jdf.queryExecution().optimizedPlan()
            output = attributes(plan.child().output())
            call = plan.projectList().head().child()
            bound = expressions.BindReferences.bindReference(call, output, False)
            for row in rows:
                bound.eval(row)
        except py4j.protocol.Py4JJavaError as error:
            return error_class(error)
    return None


def difference(ours: kq.ExecutionContext, text: str, theirs: pa.ChunkedArray | str) -> str | None:
    """What is wrong with our answer; "declined" where there is none."""
    try:
        mine = ours.sql(f"SELECT {text} AS c FROM fuzz_rows").to_arrow().column(0)
    except Unsupported:
        return "declined"
    except (SqlError, PlanError, ExecutionError) as error:
        if isinstance(theirs, str):
            return None
        if theirs.null_count == len(theirs):  # Spark's optimizer makes NULL of a call with a constant NULL
            return None
        return "declined" if isinstance(error, SqlError | PlanError) else f"raises {str(error)[:150]}"
    except Exception as error:
        return f"fails with {type(error).__name__}: {str(error)[:150]}"
    if (
        theirs == "ArrowInvalid"
    ):  # PySpark itself cannot hand over a NULL struct of fields that are never NULL
        return None
    if isinstance(theirs, str):
        return f"gives {values(mine)} for {theirs}"
    a, b = values(mine), values(theirs)
    wrong = [(x, y) for x, y in zip(a, b, strict=True) if not close(x, y)]
    return f"gives {wrong[0][0]!r}, not {wrong[0][1]!r}" if wrong else None


@pytest.fixture(scope="module")
def ours(spark, tmp_path_factory):
    """The rows in both engines."""
    path = str(tmp_path_factory.mktemp("fuzz") / "rows")
    spark.sql(ROWS).coalesce(1).write.parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("fuzz_rows")
    context = kq.ExecutionContext()
    context.register_parquet("fuzz_rows", path)
    with uncompiled(spark):
        yield context
    spark.catalog.dropTempView("fuzz_rows")


@pytest.mark.parametrize("seed", range(1, 3))
def test_same_answers_as_spark(spark, ours, seed):
    rng = Random(seed)
    texts = [expression(rng, rng.choice(list(LEAVES)), rng.choice((1, 2, 2, 3))) for _ in range(COUNT)]
    found = {t: difference(ours, t, theirs) for t, theirs in zip(texts, by_spark(spark, texts), strict=True)}
    declined = sum(1 for what in found.values() if what == "declined")
    wrong = [f"{text}\n    {what}" for text, what in found.items() if what not in (None, "declined")]
    assert not wrong, "\n".join(wrong)
    assert declined < len(texts) / 4, "\n".join(text for text, what in found.items() if what == "declined")

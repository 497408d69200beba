"""SQL that writes, after ``kq.enable``: what is left in tables, the frames given and the errors are Spark's."""

from __future__ import annotations

import glob
import os
import re
import shutil
import warnings

import pytest

import kquery_spark as kq
from kquery_spark.accelerate import statements
from kquery_spark.errors import Unsupported
from kquery_spark.spark_bridge.plan import write_statements
from kquery_spark.spark_bridge.session.failures import error_class
from tests.conftest import exhaustive, settings, uncompiled

GROUPS = "SELECT k, count(*) AS n, sum(x) AS x FROM sql_rows GROUP BY k"
NUMBERS = "CREATE TABLE {t} (k BIGINT, n BIGINT, x DOUBLE) USING parquet"
PARTITIONS = "CREATE TABLE {t} (n INT, x DECIMAL(10, 1), k INT) USING orc PARTITIONED BY (k)"


@pytest.fixture(scope="module")
def directory(spark, tmp_path_factory):
    """Files of the rows that all statements read."""
    path = str(tmp_path_factory.mktemp("sql_writes") / "rows")
    columns = "id", "id % 7 AS k", "if(id % 3 = 0, NULL, id * 1.5D) AS x", "CAST(id AS STRING) AS s"
    spark.range(300).selectExpr(*columns).coalesce(1).write.parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("sql_rows")
    with uncompiled(spark):
        yield path
    spark.catalog.dropTempView("sql_rows")


@pytest.fixture
def engine(spark, directory, monkeypatch):
    """Runs a statement with the engine enabled; ``used``: whether the last one's query was given to the engine."""
    planned = []
    real = statements._plan_write

    def spy(*arguments):
        planned.append(real(*arguments))
        return planned[-1]

    monkeypatch.setattr(statements, "_plan_write", spy)

    def run(text, when="always"):
        planned.clear()
        kq.enable(spark, when=when)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", kq.FallbackWarning)
                return spark.sql(text)
        finally:
            kq.disable(spark)

    run.used = lambda: any(planned)
    yield run
    for name in ("sql_plain", "sql_fast"):
        _drop(spark, name)


def _drop(spark, name):
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    shutil.rmtree(_location(spark, name), ignore_errors=True)


def _location(spark, name):
    return os.path.join(spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:"), name)


def _text(value):
    """Without the names of the two tables."""
    return re.sub("sql_(plain|fast)", "", str(value))


def _table_rows(spark, name):
    """What a statement left: rows, description and number of files."""
    try:
        rows = sorted(map(repr, spark.table(name).collect()))
    except Exception as error:
        return type(error).__name__
    described = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    facts = [_text(row) for row in described if row[0] not in ("Created Time", "Statistics")]
    return rows, facts, len(glob.glob(f"{_location(spark, name)}/**/*.*", recursive=True))


def _compare(spark, engine, setup, statement):
    """Run by Spark and with the engine; whether the engine was given the query, and Spark's outcome."""
    outcomes = []
    for name in ("sql_plain", "sql_fast"):
        _drop(spark, name)
        if setup:
            spark.sql(setup.format(t=name))
        text = statement.format(t=name)
        try:
            frame = (spark.sql if name == "sql_plain" else engine)(text)
            outcome = frame.collect(), frame.schema
        except kq.FallbackWarning:
            raise
        except Exception as error:
            outcome = (type(error), error_class(error)), str(error)
        outcomes.append((outcome[0], outcome[1] if outcome[0] == [] else None, _table_rows(spark, name)))
    assert outcomes[0] == outcomes[1]
    return engine.used(), outcome


def _more(*cases):
    """Variants that take their time."""
    return [pytest.param(*case, marks=exhaustive) for case in cases]


@pytest.mark.parametrize(
    ("setup", "statement"),
    [
        (NUMBERS, f"INSERT OVERWRITE TABLE {{t}} {GROUPS} ORDER BY k"),
        (NUMBERS, f"/* why */ WITH q AS ({GROUPS}) INSERT INTO {{t}} (n, k) SELECT k, n FROM q WHERE n > 42"),
        (PARTITIONS, f"INSERT OVERWRITE {{t}} PARTITION (k = 3) SELECT n, x FROM ({GROUPS})"),
        (None, f"CREATE TABLE {{t}} USING parquet COMMENT 'c' TBLPROPERTIES ('a' = 'b') AS {GROUPS}"),
        *_more(
            (NUMBERS, f"INSERT INTO {{t}} BY NAME SELECT x, n, k FROM ({GROUPS})"),
            (NUMBERS, f"INSERT INTO {{t}} WITH q AS ({GROUPS}) SELECT a.* FROM q a JOIN q b ON a.k = b.k"),
            (PARTITIONS, f"INSERT INTO {{t}} SELECT n, x, k FROM ({GROUPS})"),
            (None, f"CREATE TABLE {{t}} USING orc PARTITIONED BY (k) AS {GROUPS}"),
            (
                None,
                f"CREATE TABLE {{t}} USING parquet CLUSTERED BY (k) SORTED BY (n) INTO 3 BUCKETS AS {GROUPS}",
            ),
            (None, f"CREATE TABLE {{t}} USING json AS SELECT /*+ REPARTITION(3) */ * FROM ({GROUPS})"),
            (None, f"CREATE TABLE IF NOT EXISTS {{t}} USING csv OPTIONS (header 'true') AS {GROUPS}"),
        ),
    ],
)
def test_a_statement_writes_what_spark_writes(spark, engine, setup, statement):
    used, (rows, schema) = _compare(spark, engine, setup, statement)
    assert used and rows == [] and not len(schema)


def test_strings_of_a_length_keep_it(spark, engine):
    spark.sql("CREATE TABLE sql_chars (c CHAR(5), v VARCHAR(7), k INT COMMENT 'why') USING parquet")
    try:
        spark.sql("INSERT INTO sql_chars VALUES ('a', 'b', 1), ('abc', 'de', 2)")
        query = "SELECT c, v, max(k) AS k FROM sql_chars GROUP BY c, v"
        assert _compare(spark, engine, None, f"CREATE TABLE {{t}} USING parquet AS {query}")[0]
    finally:
        spark.sql("DROP TABLE sql_chars")


@pytest.mark.parametrize(
    ("setup", "statement", "condition"),
    [
        (NUMBERS, f"INSERT INTO {{t}} SELECT k FROM ({GROUPS})", "INSERT_COLUMN_ARITY_MISMATCH"),
        (NUMBERS, "INSERT INTO {t} SELECT k, 1, sum(1 / (k - 3)) FROM sql_rows GROUP BY k", "DIVIDE_BY_ZERO"),
        (NUMBERS, "INSERT OVERWRITE {t} SELECT k, count(*), 1 FROM {t} GROUP BY k", "UNSUPPORTED_OVERWRITE"),
        (
            "CREATE TABLE {t} (k TINYINT, n TINYINT) USING parquet",
            "INSERT INTO {t} SELECT k, sum(id) FROM sql_rows GROUP BY k",
            "CAST_OVERFLOW_IN_TABLE_INSERT",
        ),
        *_more(
            (NUMBERS, "INSERT INTO {t} SELECT s, count(*), 1 FROM sql_rows GROUP BY s", "INCOMPATIBLE_DATA_FOR_TABLE"),
            (None, "CREATE TABLE {t} USING parquet AS SELECT sum(1 / (k - 3)) AS x FROM sql_rows", "DIVIDE_BY_ZERO"),
            (NUMBERS, f"CREATE TABLE {{t}} USING parquet AS {GROUPS}", "TABLE_OR_VIEW_ALREADY_EXISTS"),
            (
                "CREATE TABLE {t} (v VARCHAR(2), n INT) USING parquet",
                "INSERT INTO {t} SELECT s, count(*) FROM sql_rows GROUP BY s",
                "EXCEED_LIMIT_LENGTH",
            ),
        ),
    ],
)  # fmt: skip
def test_an_error_is_sparks_own_and_leaves_what_spark_leaves(spark, engine, setup, statement, condition):
    with settings(spark, {"spark.sql.ansi.enabled": "true"}):
        used, (_, text) = _compare(spark, engine, setup, statement)
    assert used and condition in text and "kquery_spark" not in text


@pytest.mark.parametrize(
    ("setup", "statement"),
    [
        (NUMBERS, "INSERT INTO {t} SELECT DEFAULT, k, 1 FROM sql_rows"),
        (NUMBERS, "INSERT INTO {t} VALUES (1, 2, 3)"),
        (NUMBERS, "INSERT INTO {t} SELECT * FROM sql_nowhere"),
        (None, f"CREATE OR REPLACE TEMPORARY VIEW sql_view AS {GROUPS}"),
        *_more(
            (NUMBERS, f"FROM ({GROUPS}) INSERT INTO {{t}} SELECT * INSERT INTO {{t}} SELECT k, n, x"),
            (NUMBERS, f"INSERT INTO sql_nowhere {GROUPS}"),
            (NUMBERS, f"INSERT INTO sql_rows {GROUPS}"),
            (None, f"CREATE TABLE {{t}} USING sql_nothing AS {GROUPS}"),
        ),
    ],
)
def test_other_statements_stay_with_spark(spark, engine, setup, statement):
    assert not _compare(spark, engine, setup, statement)[0]
    spark.catalog.dropTempView("sql_view")


def test_partitions_are_replaced_as_the_setting_says(spark, engine):
    insert = f"INSERT OVERWRITE {{t}} SELECT n, x, k FROM ({GROUPS}) WHERE k < 2"
    setup = (
        f"CREATE TABLE {{t}} USING parquet PARTITIONED BY (k) AS SELECT n, x, k FROM ({GROUPS}) WHERE k > 0"
    )
    for mode, partitions in (("static", 2), ("dynamic", 7)):
        with settings(spark, {"spark.sql.sources.partitionOverwriteMode": mode}):
            assert _compare(spark, engine, setup, insert)[0]
        assert spark.sql("SHOW PARTITIONS sql_fast").count() == partitions


def test_a_directory_is_written_but_not_the_one_that_is_read(spark, engine, directory, tmp_path):
    out = str(tmp_path / "out")
    engine(f"INSERT OVERWRITE DIRECTORY '{out}' USING parquet {GROUPS}")
    assert engine.used() and spark.read.parquet(out).count() == 7
    shutil.copytree(directory, tmp_path / "same")
    query = f"SELECT count(*) AS n FROM parquet.`{tmp_path}/same`"
    engine(f"INSERT OVERWRITE DIRECTORY '{tmp_path}/same' USING parquet {query}")
    assert not engine.used()


def test_a_failure_of_the_engine_runs_the_statement_once_more(spark, engine, tmp_path, monkeypatch):
    path = tmp_path / "rows"
    spark.range(100).selectExpr("id % 7 AS k", "id AS v").coalesce(1).write.parquet(str(path))
    spark.sql("CREATE TABLE sql_fast (k BIGINT, v BIGINT) USING parquet")
    real = statements._plan_write

    def changing(*arguments):
        planned = real(*arguments)
        for file in path.glob("*.parquet"):
            os.utime(file, (2_000_000_000, 2_000_000_000))
        return planned

    monkeypatch.setattr(statements, "_plan_write", changing)
    insert = f"INSERT INTO sql_fast SELECT k, sum(v) FROM parquet.`{path}` GROUP BY k"
    kq.enable(spark, when="always")
    try:
        with pytest.warns(
            kq.FallbackWarning, match="failed in write, so Spark runs the query again: SourceError"
        ):
            spark.sql(insert)
    finally:
        kq.disable(spark)
    assert spark.table("sql_fast").count() == 7


def test_nothing_runs_again_that_may_have_left_something(spark, engine):
    spark.sql(NUMBERS.format(t="sql_fast"))
    with settings(spark, {"mapreduce.fileoutputcommitter.algorithm.version": "2"}):
        engine(f"INSERT INTO sql_fast {GROUPS}")
        assert not engine.used()


def test_rows_that_are_only_passed_on_stay_with_spark(spark, engine):
    spark.sql(NUMBERS.format(t="sql_fast"))
    engine("INSERT INTO sql_fast SELECT k, id, x FROM sql_rows WHERE id < 9", when="auto")
    assert not engine.used() and spark.table("sql_fast").count() == 9


def test_spark_sees_one_command(spark, engine):
    counts = []
    for name, run in (("sql_plain", spark.sql), ("sql_fast", engine)):
        spark.sql(NUMBERS.format(t=name))
        before = _executions(spark)
        run(f"INSERT INTO {name} {GROUPS}")
        counts.append(len(_executions(spark) - before))
    assert counts == [1, 1]


def _executions(spark):
    """The numbers of the queries that Spark's UI knows; it forgets all but the last thousand."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    known = spark._jsparkSession.sharedState().statusStore().executionsList()
    return {known.apply(i).executionId() for i in range(known.size())}


def test_a_planning_error_is_a_warning(spark, engine, monkeypatch):
    def bug(*_):
        raise KeyError("parser")

    spark.sql(NUMBERS.format(t="sql_fast"))
    monkeypatch.setattr(statements, "parse_write", bug)
    kq.enable(spark, when="always")
    try:
        with pytest.warns(
            kq.FallbackWarning, match="could not plan the statement, so Spark runs it: KeyError"
        ):
            spark.sql(f"INSERT INTO sql_fast {GROUPS}")
    finally:
        kq.disable(spark)
    assert spark.table("sql_fast").count() == 7


def test_an_unknown_spark_runs_the_statement(monkeypatch):
    def unknown(_):
        raise Unsupported("this session runs 5.0.0")

    monkeypatch.setattr(statements, "get_bridge", unknown)
    with pytest.warns(kq.FallbackWarning, match=r"so Spark runs it: this session runs 5\.0\.0"):
        assert statements.run_write(object(), "INSERT INTO t SELECT 1", "spark", "auto") is None


def test_arguments_are_sparks(spark, engine):
    spark.sql(NUMBERS.format(t="sql_fast"))
    kq.enable(spark, when="always")
    try:
        spark.sql("INSERT INTO sql_fast SELECT k, :n, 1 FROM sql_rows GROUP BY k", {"n": 5})
        spark.sql("INSERT INTO sql_fast SELECT k, {n}, 1 FROM sql_rows GROUP BY k", n=6)
        with pytest.raises(TypeError):
            spark.sql()
    finally:
        kq.disable(spark)
    assert spark.sql("SELECT count(*), sum(n) FROM sql_fast").first() == (14, 77)


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        (" -- INSERT\n/* a *//* b */ Insert into default.t select 1", True),
        ("CREATE TABLE `default`.`t` AS SELECT 1", True),
        ("WITH q AS (SELECT 1) INSERT INTO t SELECT * FROM q", True),
        ("WITH q AS (SELECT 1) SELECT replace(x, 'a') AS c FROM q", False),
        ("INSERT INTO t SELECT DEFAULT", False),
        ("CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 1", False),
        ("/* a */" * 50 + "(SELECT 1)", False),
    ],
)
def test_only_statements_that_may_write_are_parsed_twice(text, parsed):
    assert write_statements.may_write(text) == parsed

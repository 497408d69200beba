"""Tables and files that change between planning, running and running again: what Spark would read, or refuse, is what counts."""

import os
import threading
import time
import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.accelerate import api
from kquery_spark.compiler import compile as compile_module
from kquery_spark.spark_bridge.relations import catalog_snapshot
from kquery_spark.spark_bridge.session.bridge import get_bridge
from tests.conftest import exhaustive, settings


def fast(frame, **options):
    return frame.transform(kquery_plan, when="always", **options)


def rows(frame):
    return sorted(map(tuple, frame.collect()), key=repr)


@pytest.fixture
def table(spark, tmp_path):
    """Makes tables of the catalog, and takes them away again."""
    made = []

    def make(name, frame, **options):
        frame.write.saveAsTable(name, path=str(tmp_path / name), **options)
        made.append(name)
        return name

    yield make
    for name in made:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.fixture
def numbers(spark):
    return spark.range(200).selectExpr("id", "id % 7 AS k")


def test_an_action_reads_what_was_inserted_before_it(spark, table, numbers):
    table("changed_t", numbers)
    plain = spark.table("changed_t")
    frame, derived = fast(plain), fast(plain).select("*")
    grouped = fast(plain.groupBy("k").count())
    fast(plain).createOrReplaceTempView("changed_v")
    assert "Operations on top of the result run in Spark" in str(kq.explain(grouped))
    before = rows(grouped)
    spark.sql("INSERT INTO changed_t VALUES (1000, 99), (1001, 99)")
    assert rows(grouped) == before  # as Spark's own frame, whose plan has listed the files
    assert rows(fast(plain.groupBy("k").count())) == sorted([*before, (99, 2)], key=repr)
    assert frame.count() == derived.count() == spark.table("changed_v").count() == 202
    assert rows(frame) == rows(derived) == rows(spark.table("changed_t"))
    spark.sql("INSERT INTO changed_t VALUES (1002, 99)")  # which Spark shows new frames only
    now = plain.where("true").count()
    assert frame.count() == frame.toArrow().num_rows == len(frame.toPandas()) == now
    assert derived.count() == plain.select("*").count()
    assert spark.table("changed_t").transform(kquery_plan, when="always").count() == 203
    assert grouped.count() == plain.groupBy("k").count().count() and kq.explain(grouped).accelerated
    spark.catalog.dropTempView("changed_v")


def test_a_write_includes_rows_inserted_after_its_writer_was_created(spark, tmp_path, table, numbers):
    table("changed_w", numbers)
    query = spark.table("changed_w").groupBy("k").count()
    writers = {"spark": query.write, "engine": fast(query).write}
    for k in (99, 100):  # a writer may be used again
        spark.sql(f"INSERT INTO changed_w VALUES (1000, {k})")
        written = {}
        for name, writer in writers.items():
            writer.mode("overwrite").parquet(str(tmp_path / name))
            written[name] = rows(spark.read.parquet(str(tmp_path / name)))
        assert written["engine"] == written["spark"]
        assert (99, 1) in written["spark"]
    for name, writer in writers.items():
        table(f"changed_by_{name}", query.where("false"))
        writer.insertInto(f"changed_by_{name}")
    assert rows(spark.table("changed_by_engine")) == rows(spark.table("changed_by_spark"))


def test_a_table_in_a_subquery_is_one_too(spark, tmp_path, table, numbers):
    table("changed_q", numbers.where("id < 3"))
    numbers.write.parquet(str(tmp_path / "plain"))
    spark.read.parquet(str(tmp_path / "plain")).createOrReplaceTempView("changed_plain")
    for condition in (
        "id IN (SELECT id FROM changed_q)",
        "id <= (SELECT max(id) FROM changed_q)",
        "k = 1 AND (id = 1 OR EXISTS (SELECT 1 FROM changed_q q WHERE q.id > changed_plain.id))",
    ):
        frame = spark.sql(f"SELECT * FROM changed_plain WHERE {condition}")
        early = fast(frame)
        spark.sql("INSERT INTO changed_q SELECT max(id) + 20, 1 FROM changed_q")
        assert rows(early) == rows(spark.sql(f"SELECT * FROM changed_plain WHERE {condition}"))
    spark.catalog.dropTempView("changed_plain")


def test_files_that_a_refresh_finds(spark, table, numbers):
    table("changed_r", numbers)
    frame = fast(spark.table("changed_r").where("k = 3"))
    directory = os.path.dirname(spark.table("changed_r").inputFiles()[0].removeprefix("file:"))
    numbers.write.mode("append").parquet(directory)
    spark.sql("REFRESH TABLE changed_r")
    assert frame.count() == spark.table("changed_r").where("k = 3").count() == 2 * 28 + 2


def test_partitions_that_are_replaced_and_dropped(spark, table, numbers):
    table("changed_p", numbers, partitionBy="k")
    for change, left in (
        ("INSERT OVERWRITE changed_p PARTITION (k = 1) SELECT 100", 1),
        ("ALTER TABLE changed_p DROP PARTITION (k = 1)", 0),
    ):
        query = "SELECT count(*) AS n FROM changed_p WHERE k = 1"
        before, declined = fast(spark.sql(query)), spark.sql("SELECT id FROM changed_p WHERE k = 1")
        assert kquery_plan(declined) is declined
        kq.explain(declined)
        spark.sql(change)
        with warnings.catch_warnings():
            warnings.simplefilter("error", kq.FallbackWarning)
            assert before.toArrow().to_pydict() == {"n": [left]}
        assert declined.count() == left


def test_a_table_that_is_read_is_not_overwritten(spark, table, numbers):
    table("changed_o", numbers)
    directory = os.path.dirname(spark.table("changed_o").inputFiles()[0].removeprefix("file:"))
    by_name, by_path = spark.table("changed_o").where("k > 1"), spark.read.parquet(directory).where("k > 1")
    for frame in (by_name, by_path):
        accelerated = fast(frame)
        accelerated.createOrReplaceTempView("changed_w")
        for write in (
            lambda: spark.sql("INSERT OVERWRITE changed_o SELECT * FROM changed_w"),
            lambda f=accelerated: f.select("*").write.insertInto("changed_o", overwrite=True),
            lambda f=accelerated: f.write.insertInto("changed_o", overwrite=True),
        ):
            with pytest.raises(Exception, match="UNSUPPORTED_OVERWRITE"):
                write()
    with pytest.raises(Exception, match="UNSUPPORTED_OVERWRITE"):
        fast(by_name).select("*").write.mode("overwrite").format("parquet").saveAsTable("changed_o")
    assert spark.table("changed_o").count() == 200
    spark.catalog.dropTempView("changed_w")


def test_what_is_made_of_files_by_path_is_still_the_engines(spark, tmp_path, numbers):
    numbers.write.parquet(str(tmp_path / "in"))
    frame = spark.read.parquet(str(tmp_path / "in")).groupBy("k").agg(F.sum("id").alias("s"))
    derived = fast(frame).where(frame["s"] > 100).select(frame["k"], "s")
    assert "MapInArrow" in derived._jdf.queryExecution().optimizedPlan().toString()
    assert "Relation" not in derived._jdf.queryExecution().optimizedPlan().toString()
    assert rows(derived) == rows(frame.where("s > 100"))


@pytest.mark.parametrize("how", ["parquet", "save", "option"])
def test_a_directory_is_overwritten_by_what_was_in_it(spark, tmp_path, numbers, how):
    directory = str(tmp_path / "self")
    for query in (
        lambda f: f.dropDuplicates(["k"]),
        lambda f: f.orderBy("id"),
        lambda f: f.groupBy("k").count(),
    ):
        numbers.coalesce(1).write.mode("overwrite").parquet(directory)
        source = spark.read.parquet(directory)
        expected = query(source).count()
        frame = fast(query(source))
        if how == "parquet":
            frame.write.mode("overwrite").parquet(directory)
        elif how == "save":
            frame.write.format("parquet").partitionBy("k").save(f"file:{directory}", mode="overwrite")
        else:
            frame.write.option("path", directory).mode("overwrite").save()
        assert spark.read.parquet(directory).count() == expected
    frame = fast(spark.read.parquet(directory))
    frame.write.mode("overwrite").option("compression", "gzip").parquet(f"{directory}-of-another-name")
    assert rows(spark.read.parquet(f"{directory}-of-another-name")) == rows(spark.read.parquet(directory))


@pytest.mark.parametrize("driver", ["0", "8m"])
@pytest.mark.parametrize("rename", [False, True])
def test_another_file_of_the_same_size_and_time(spark, tmp_path, driver, rename):
    path, other = tmp_path / "x.parquet", tmp_path / "y.parquet"

    def put(values):
        target = tmp_path / "new" if rename and path.exists() else path
        pq.write_table(pa.table({"k": values}), target, compression="none", use_dictionary=False)
        os.utime(target, (1_700_000_000, 1_700_000_000))
        os.replace(target, path)

    pq.write_table(pa.table({"k": list(range(20))}), other)
    with settings(spark, {"spark.kquery.driverBytes": driver}):
        for query in (
            lambda: spark.read.parquet(str(path)).where("k > 5"),
            lambda: spark.read.parquet(str(path)),
            lambda: spark.read.parquet(str(other)).join(F.broadcast(spark.read.parquet(str(path))), "k"),
        ):
            put([1, 2, 3])
            rows(fast(query()))
            put([7, 8, 9])
            assert rows(fast(query())) == [(7,), (8,), (9,)]


def test_brotli_is_sparks_to_refuse(spark, tmp_path):
    if not pa.Codec.is_available("brotli"):
        pytest.skip("this pyarrow has no Brotli")
    pq.write_table(pa.table({"k": [1]}), tmp_path / "b.parquet", compression="brotli")
    frame = spark.read.parquet(str(tmp_path / "b.parquet"))
    assert any("Brotli" in reason for _, reason in kq.explain(frame).reasons)


def test_null_structs_of_fields_that_are_never_null(spark, tmp_path, numbers):
    numbers.coalesce(1).write.parquet(str(tmp_path / "q"))
    base = spark.read.parquet(str(tmp_path / "q"))
    struct = F.when(F.col("k") > 3, F.struct(F.lit(1).alias("x"))).alias("r")
    for frame in (base.select("id", struct), base.select("id", F.array(struct).alias("r"))):
        for driver in ("0", "8m"):
            with settings(spark, {"spark.kquery.driverBytes": driver}):
                with warnings.catch_warnings():
                    warnings.simplefilter("error", kq.FallbackWarning)
                    found = fast(frame, fallback="error")
                    assert rows(found) == rows(frame)
                    assert found.toPandas().equals(frame.toPandas())
                    assert found._show_string() == frame._show_string()
                grouped = frame.groupBy("r").count()
                assert rows(fast(grouped, fallback="error")) == rows(grouped)


# ------------------------------------------------------- statements of others, which begin before planning and end after it


def slow(spark, statement):
    """Starts a statement whose rows take a while to compute, in a thread; gives it when it is running, with its failure."""
    failed = []

    def run():
        try:
            spark.sql(statement).collect()
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    running = get_bridge(spark).jvm.call(catalog_snapshot._EXECUTIONS, "executionIdToQueryExecution")
    thread.start()
    deadline = time.monotonic() + 60
    while running.isEmpty() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not running.isEmpty()
    return thread, failed


STATEMENTS = {
    "insert": "INSERT INTO {table} SELECT id, 3 FROM slow_rows",
    "insert overwrite": "INSERT OVERWRITE {table} SELECT id, 3 FROM slow_rows",
    "insert into a partition": "INSERT INTO {table} PARTITION (k = 3) SELECT id FROM slow_rows",
}


def outcome(frame):
    """The rows, or that a file is missing."""
    try:
        return rows(frame)
    except Exception as error:
        assert "FILE_NOT_EXIST" in str(error)
        return "FILE_NOT_EXIST"


@pytest.fixture
def sleeper(spark):
    """A view of one row that takes four seconds."""

    def nap(value: int) -> int:
        time.sleep(4)
        return value

    spark.udf.register("nap", nap, "bigint")
    spark.sql("CREATE OR REPLACE TEMP VIEW slow_rows AS SELECT nap(id) + 500 AS id FROM range(0, 1, 1, 1)")
    yield
    spark.catalog.dropTempView("slow_rows")


@pytest.fixture
def never_old(monkeypatch):
    """Plans are not looked at again for their age alone, which a slow machine would hide other reasons behind."""
    monkeypatch.setattr(catalog_snapshot, "_STALE_SECONDS", 1e9)


@pytest.mark.usefixtures("never_old")
@pytest.mark.parametrize("other_session", [pytest.param(False, marks=exhaustive), True])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_that_runs_while_the_query_is_planned(
    spark, table, numbers, sleeper, statement, other_session
):
    name = table("changed_slow", numbers, **({"partitionBy": "k"} if "partition" in statement else {}))
    writer = spark.newSession() if other_session else spark
    if other_session:
        writer.udf.register("nap", lambda value: (time.sleep(4), value)[1], "bigint")
        writer.sql(
            "CREATE OR REPLACE TEMP VIEW slow_rows AS SELECT nap(id) + 500 AS id FROM range(0, 1, 1, 1)"
        )
    plain = spark.table(name).where("k = 3").groupBy("k").count()
    thread, failed = slow(writer, STATEMENTS[statement].format(table=name))
    accelerated = fast(spark.table(name).where("k = 3").groupBy("k").count())
    assert thread.is_alive(), "the statement was over before the query was planned"
    thread.join()
    assert not failed
    # another session's INSERT OVERWRITE leaves this one with files that are no more, in Spark as in the engine
    assert outcome(accelerated) == outcome(plain)
    if not (other_session and "overwrite" in statement):
        assert rows(accelerated) == rows(spark.table(name).where("k = 3").groupBy("k").count()) != [(3, 28)]


@pytest.mark.usefixtures("never_old")
@pytest.mark.parametrize("change", ["TRUNCATE TABLE {t}", "ALTER TABLE {t} ADD PARTITION (k = 9)"])
def test_a_statement_that_ends_while_the_query_is_planned(spark, table, numbers, monkeypatch, change):
    """It begins after the files are listed and is over before planning is."""
    name = "changed_quick"
    numbers.write.partitionBy("k").saveAsTable(name)  # Spark truncates no external table
    directory = os.path.dirname(os.path.dirname(spark.table(name).inputFiles()[0].removeprefix("file:")))
    os.makedirs(f"{directory}/k=9")
    pq.write_table(pa.table({"id": [1, 2]}), f"{directory}/k=9/f.parquet")
    build, done = compile_module.build_stages, []

    def changing(*args, **options):
        if not done:
            done.append(spark.sql(change.format(t=name)))
        return build(*args, **options)

    monkeypatch.setattr(compile_module, "build_stages", changing)
    accelerated = fast(spark.table(name).groupBy("k").count())
    try:
        assert done
        assert outcome(accelerated) == outcome(spark.table(name).groupBy("k").count())
    finally:
        spark.sql(f"DROP TABLE {name}")


@pytest.mark.usefixtures("never_old")
def test_a_query_is_planned_once_where_nothing_happened(spark, table, numbers, monkeypatch):
    name = table("changed_not", numbers)
    uuids = spark.table(name).join(spark.range(3).selectExpr("id", "uuid() AS u"), "id").groupBy("k").count()
    for query in (spark.table(name).groupBy("k").count(), uuids):
        accelerated = fast(query)
        with monkeypatch.context() as patched:
            patched.setattr(api, "plan_and_assemble", lambda *_: pytest.fail("planned again"))
            accelerated.collect()


# --------------------------------------------------------------------------------- several actions on one frame of a table


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize(
    "first",
    ["collect", "count", *(pytest.param(action, marks=exhaustive) for action in ("toPandas", "take"))],
)
def test_actions_after_a_change_see_what_sparks_see(spark, table, numbers, partitioned, first):
    """Spark's frame keeps the files of its own first plan; count and take make plans of their own."""
    name = table("changed_again", numbers, **({"partitionBy": "k"} if partitioned else {}))
    plain, accelerated = spark.table(name).groupBy("k").count(), fast(spark.table(name).groupBy("k").count())
    actions = {
        "collect": rows,
        "toPandas": lambda f: sorted(map(tuple, f.toPandas().values.tolist())),
        "count": lambda f: f.count(),
        "take": lambda f: sorted(map(tuple, f.take(100))),
        "toArrow": lambda f: sorted(zip(*f.toArrow().to_pydict().values(), strict=True)),
    }
    assert actions[first](accelerated) == actions[first](plain)
    for key in (90, 91):
        spark.sql(f"INSERT INTO {name} VALUES (1000, {key})")
        for action in actions:
            assert actions[action](accelerated) == actions[action](plain), (key, action)

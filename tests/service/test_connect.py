"""kq.connect: the DataFrame API here, tables and work in a service."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import kquery_spark as kq
from kquery_spark import col, lit
from kquery_spark.errors import (
    ConfigError,
    ExecutionError,
    PlanError,
    SerializationError,
    SourceError,
    SqlError,
    Unsupported,
)
from kquery_spark.expr import AggregateCall, Call, Case, Column, InList, Literal, Named
from kquery_spark.frontends.sql.analyzer import Analyzed
from kquery_spark.logical import Aggregate, Filter, Input, Limit, LogicalPlan, Projection, Scan
from kquery_spark.logical.subqueries import Exists, ScalarSubquery
from kquery_spark.runtime.local import Stop
from kquery_spark.service.answers import ServiceLimits
from kquery_spark.service.failures import as_engine_errors, as_flight_errors
from kquery_spark.service.requests import PlanRequest, read_request
from kquery_spark.service.server import QueryService
from kquery_spark.sources.csv.source import csv_source
from kquery_spark.sources.memory import memory_source
from kquery_spark.sources.parquet.path_source import parquet_source


@pytest.fixture
def remote(place: str) -> Iterator[kq.ExecutionContext]:
    with kq.connect(place) as remote:
        yield remote


def test_frames_are_checked_here_and_run_there(remote: kq.ExecutionContext):
    rich = remote.table("employee").filter(col("salary") * lit(2) > lit(22000)).select("id", "state")
    assert rich.schema.field("id").nullable is False
    assert sorted(r["id"] for r in rich.collect()) == [1, 3, 4]
    with pytest.raises(PlanError, match="unknown column nothing"):
        rich.select("nothing")
    assert remote.sql("SELECT count(*) AS n FROM employee").collect() == [{"n": 4}]
    assert "CA" in remote.table("employee").show_text()


def test_the_client_resolves_queries_by_the_settings_of_the_service():
    context = kq.ExecutionContext(time_zone="Asia/Tokyo", ansi=False, case_sensitive=True)
    context._facts = replace(context.facts, last_key_wins=True, recursion_rounds=7, recursion_rows=None)
    with QueryService(context) as service, kq.connect(f"grpc://127.0.0.1:{service.port}") as remote:
        assert remote.facts == context.facts
        assert remote.sql("SELECT map_from_arrays(array(1, 1), array('a', 'b')) AS x").collect() == [
            {"x": [(1, "b")]}
        ]


def test_rows_of_the_client_travel_with_the_query(remote: kq.ExecutionContext):
    bonus = pa.table({"id": pa.array([1, 3], pa.int64()), "bonus": pa.array([5, 7], pa.int32())})
    remote.register_arrow("bonus", bonus)
    found = remote.sql(
        "SELECT e.id, salary + bonus AS total FROM employee e JOIN bonus b ON e.id = b.id ORDER BY 1"
    )
    assert found.to_arrow().to_pydict() == {"id": [1, 3], "total": [12005, 11507]}
    # two tables of the same shape are not taken for each other
    remote.register_arrow("bonus", bonus.set_column(1, "bonus", pa.array([1, 1], pa.int32())))
    again = (
        remote.sql("SELECT sum(bonus) AS s FROM bonus").collect()
        + found.agg(kq.sum(col("total")).alias("s")).collect()
    )
    assert again == [{"s": 2}, {"s": 23512}]


def test_cached_frames_and_views(remote: kq.ExecutionContext):
    top = remote.sql("SELECT state, max(salary) AS top FROM employee GROUP BY state").cache()
    assert top.count() == 3
    top.createOrReplaceTempView("tops")
    assert remote.sql("SELECT max(top) AS m FROM tops").collect() == [{"m": 12000}]


def test_names_may_repeat(remote: kq.ExecutionContext):
    assert remote.sql("SELECT id, id FROM employee LIMIT 1").to_arrow().schema.names == ["id", "id"]


def test_explain_is_the_service_s(remote: kq.ExecutionContext):
    text = remote.sql("SELECT name FROM states WHERE code = 'CA'").explain()
    assert "ScanExec: states" in text and "splits=1" in text
    assert "== Rule" not in text
    assert "== Rule predicate_pushdown ==" in remote.sql("SELECT name FROM states").explain(trace=True)


def test_errors_keep_their_classes(remote: kq.ExecutionContext):
    with pytest.raises(ExecutionError, match=r"^\[DIVIDE_BY_ZERO\]") as raised:
        remote.sql("SELECT 1 / (id - 1) FROM employee").collect()
    assert raised.value.error_class == "DIVIDE_BY_ZERO"
    with pytest.raises(SqlError, match="line 1"):
        remote.sql("SELEC 1")


@pytest.mark.parametrize("ansi", [True, False])
def test_the_settings_are_the_service_s(ansi: bool):
    context = kq.ExecutionContext(time_zone="America/New_York", ansi=ansi, case_sensitive=True)
    with kq.QueryService(context) as service, kq.connect(f"grpc://127.0.0.1:{service.port}") as remote:
        assert remote.facts == context.facts
        sql = "SELECT hour(timestamp '2024-07-01 00:00:00+00:00') AS h"
        assert remote.sql(sql).collect() == context.sql(sql).collect() == [{"h": 20}]


def test_tables_that_come_and_go(context: kq.ExecutionContext, remote: kq.ExecutionContext, tmp_path: Path):
    old = remote.table("states")
    pq.write_table(pa.table({"code": ["CA"]}), tmp_path / "t.parquet")
    context.register_parquet("states", tmp_path / "t.parquet")
    with pytest.raises(PlanError, match="other columns"):
        old.collect()
    remote.refresh()
    assert remote.table("states").collect() == [{"code": "CA"}]


def test_files_of_the_client_do_not_travel(remote: kq.ExecutionContext, tmp_path: Path):
    pq.write_table(pa.table({"x": [1]}), tmp_path / "x.parquet")
    remote.register_parquet("mine", tmp_path / "x.parquet")
    with pytest.raises(PlanError, match="mine is a file of this machine"):
        remote.table("mine").collect()


def plans_of_strangers(path: Path) -> dict[str, LogicalPlan]:
    pq.write_table(pa.table({"x": [1]}), path)
    scan = Scan("secret", parquet_source([str(path)]))
    lines = csv_source([str(path)], pa.schema([("x", pa.string())]), "UTC", header=False)
    rows = Scan("rows", memory_source(pa.table({"x": [1]})))
    return {
        "files": scan,
        "files below": Limit(scan, 1),
        "files in a subquery": Projection(rows, (Named(ScalarSubquery(Limit(scan, 1)), "x"),)),
        "lines in a subquery": Projection(rows, (Named(ScalarSubquery(Scan("secret", lines)), "x"),)),
        "files in an EXISTS": Filter(rows, Exists(Limit(scan, 1))),
    }


@pytest.mark.parametrize(
    "which", ["files", "files below", "files in a subquery", "lines in a subquery", "files in an EXISTS"]
)
def test_plans_of_strangers_reach_no_files(tmp_path: Path, which: str):
    plan = plans_of_strangers(tmp_path / "x.parquet")[which]
    with pytest.raises(SerializationError, match=r"cannot have a (Parquet|Csv)Source"):
        read_request(PlanRequest(Analyzed(plan, ("x",))).ticket)


def test_files_are_refused_even_in_a_plan_that_was_let_in(context: kq.ExecutionContext, tmp_path: Path):
    for plan in plans_of_strangers(tmp_path / "x.parquet").values():
        with pytest.raises(PlanError, match="reads secret from a source of the client"):
            PlanRequest(Analyzed(plan, ("x",))).resolved(context)


def test_an_open_plan_is_refused(context: kq.ExecutionContext):
    plan = Input("input", pa.schema([("x", pa.int64())]), "key")
    request = read_request(PlanRequest(Analyzed(plan, ("x",))).ticket)
    for ask in (lambda c: request.answer(c, Stop()), request.schema):
        with pytest.raises(PlanError, match="open input"):
            ask(context)


LONG = pa.int64()
ROWS = Scan("rows", memory_source(pa.table({"x": pa.array([2**40, 7], LONG)})))
LIES: dict[str, LogicalPlan] = {
    "a bigint as text": Projection(ROWS, (Named(Call.of("upper", Column("x", pa.string())), "y"),)),
    "a column as NOT NULL": Projection(ROWS, (Named(Column("x", LONG, False), "y"),)),
    "a sum as a decimal": Projection(
        ROWS, (Named(Call("add", (Column("x", LONG), Column("x", LONG)), pa.decimal128(38, 2)), "y"),)
    ),
    "a number in a text's place": Projection(ROWS, (Named(Call("upper", (Column("x", LONG),), pa.string()), "y"),)),
    "a literal": Projection(ROWS, (Named(Literal("text", LONG), "y"),)),
    "a type that Spark has not": Projection(ROWS, (Named(Literal(1, pa.uint8()), "y"),)),
    "an aggregate": Aggregate(ROWS, (), (Named(AggregateCall("max", (Column("x", LONG),), pa.string()), "y"),)),
    "an aggregate outside": Projection(ROWS, (Named(AggregateCall.of("max", Column("x", LONG)), "y"),)),
    "branches": Projection(ROWS, (Named(Case(((Literal(True, pa.bool_()), Column("x", LONG)),), Literal("a", pa.string())), "y"),)),
    "a list": Filter(ROWS, InList(Column("x", LONG), (Literal("a", pa.string()),))),
    "in a subquery": Projection(
        ROWS, (Named(ScalarSubquery(Projection(ROWS, (Named(Column("x", pa.string()), "y"),))), "y"),)
    ),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_plans_that_state_wrong_types_are_refused(context: kq.ExecutionContext, lie: str):
    request = read_request(PlanRequest(Analyzed(LIES[lie], (LIES[lie].schema.names[0],))).ticket)
    with pytest.raises((PlanError, Unsupported)):
        request.answer(context, Stop())


def test_rows_that_are_null_against_their_schema_are_refused(context: kq.ExecutionContext):
    table = pa.Table.from_arrays([pa.array([1, None])], schema=pa.schema([pa.field("x", LONG, False)]))
    request = read_request(PlanRequest(Analyzed(Scan("rows", memory_source(table)), ("x",))).ticket)
    with pytest.raises(PlanError, match="declared NOT NULL but contains NULLs"):
        request.answer(context, Stop())


def test_subqueries_read_tables_of_the_service(remote: kq.ExecutionContext):
    sql = """SELECT id FROM employee WHERE salary = (SELECT max(salary) FROM employee)
             AND state IN (SELECT code FROM states) AND EXISTS (SELECT 1 FROM states WHERE code = state)"""
    assert remote.sql(sql).collect() == [{"id": 1}]


def test_a_token_is_needed_where_one_is_set(context: kq.ExecutionContext):
    with kq.QueryService(context, token="secret") as service:
        place = f"grpc://127.0.0.1:{service.port}"
        with pytest.raises(ConfigError, match="token"):
            kq.connect(place)
        with kq.connect(place, token="secret") as remote:
            assert remote.table("employee").count() == 4


def test_places_without_a_service():
    with pytest.raises(SourceError, match=r"no service answers at grpc://127\.0\.0\.1:1"):
        kq.connect("grpc://127.0.0.1:1")
    with pytest.raises(PlanError, match="write grpc://HOST:PORT"):
        kq.connect("nowhere")


def test_every_error_comes_back_as_it_was():
    from kquery_spark import errors

    kinds = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, errors.KQueryError)]
    for kind in kinds:
        one = kind("DIVIDE_BY_ZERO", "no") if kind is ExecutionError else kind("no")
        with pytest.raises(kind) as raised, as_engine_errors("grpc://there"), as_flight_errors():
            raise one
        assert type(raised.value) is kind and str(raised.value) == str(one)


def test_a_service_on_spark_gives_spark_s_answer(spark: SparkSession, tmp_path: Path):
    rows = spark.range(1000).selectExpr("id", "id % 7 AS k", "CAST(id AS decimal(12,2)) AS d")
    rows.write.parquet(str(tmp_path / "rows"))
    on_spark = kq.ExecutionContext(spark)
    on_spark.register_parquet("rows", tmp_path / "rows")
    spark.read.parquet(str(tmp_path / "rows")).createOrReplaceTempView("rows")
    sql = "SELECT k, sum(d) AS s, avg(id) AS a FROM rows GROUP BY k ORDER BY k"
    with kq.QueryService(on_spark) as service, kq.connect(f"grpc://127.0.0.1:{service.port}") as remote:
        assert remote.sql(sql).to_arrow().to_pylist() == [r.asDict() for r in spark.sql(sql).collect()]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes its certificate with openssl")
def test_an_encrypted_service(context: kq.ExecutionContext, tmp_path: Path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    subprocess.run(
        [*command, *subject, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True
    )
    tls = certificate.read_bytes(), key.read_bytes()
    with kq.QueryService(context, "grpc+tls://localhost:0", tls=tls) as service:
        with kq.connect(f"grpc+tls://localhost:{service.port}", tls_root_certs=tls[0]) as remote:
            assert remote.table("employee").count() == 4
        with pytest.raises(SourceError, match="no service answers"):
            kq.connect(f"grpc+tls://localhost:{service.port}")


def test_deleting_a_reader_stops_the_query_in_the_service(context: kq.ExecutionContext):
    limits = ServiceLimits(running_queries=1)
    with (
        QueryService(context, limits=limits) as service,
        kq.connect(f"grpc://127.0.0.1:{service.port}") as remote,
    ):
        frame = remote.sql("SELECT a.id FROM range(3000000) a CROSS JOIN range(1000000) b")
        with frame.to_reader() as reader:
            assert reader.read_next_batch().num_rows > 0
        del reader
        # the service is free for others
        assert remote.table("employee").count() == 4


def test_an_error_in_the_middle_of_a_stream_keeps_its_class(remote: kq.ExecutionContext):
    reader = remote.sql("SELECT 1 / (id - 2900000) AS x FROM range(3000000)").to_reader()
    with pytest.raises(ExecutionError, match="DIVIDE_BY_ZERO"):
        reader.read_all()


def test_the_name_of_a_remote_table_does_not_depend_on_what_was_imported_first():
    code = """
        from kquery_spark.stages import serializable
        {first}
        from kquery_spark.sources.remote import RemoteTable
        print(serializable.registry().formats[RemoteTable].name)
    """
    for first in ("", "serializable.registry()"):
        script = textwrap.dedent(code.replace("{first}", first))
        run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert run.stdout.strip() == "RemoteTable"

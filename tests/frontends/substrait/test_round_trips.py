"""Queries that are written as Substrait and read again: equal plans, equal rows, and reasons for those that are declined."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.errors import SubstraitError
from kquery_spark.frontends.substrait.messages import parse_plan
from tests.frontends.substrait import queries
from tests.frontends.substrait.engines import in_any_order, rows_of

pytest.importorskip("substrait")


@pytest.fixture(scope="module", params=[True, False], ids=["ansi", "legacy"])
def context(request):
    return queries.context(ansi=request.param)


@pytest.mark.parametrize("sql", queries.QUERIES)
def test_plan_is_equal_after_it_was_written_and_read(sql, context):
    frame = context.sql(sql)
    try:
        written = frame.to_substrait()
    except SubstraitError as error:
        # Casts wrap around or return NULL outside of ANSI mode, which Substrait cannot express.
        assert not context.facts.ansi and "outside of ANSI mode" in str(error)
        return
    read = context.substrait_query(written)
    assert read.names == frame.analyzed.names
    if context.facts.ansi:
        assert read.plan == frame.plan
    assert read.plan.schema.equals(frame.plan.schema)
    assert rows_of(context.run(read)) == rows_of(frame.to_arrow())


@pytest.mark.parametrize("sql", queries.REWRITTEN)
def test_rows_are_equal_after_a_plan_was_written_in_another_form(sql, context):
    frame = context.sql(sql)
    read = context.substrait(frame.to_substrait())
    assert read.schema.equals(frame.schema)
    assert in_any_order(rows_of(read.to_arrow())) == in_any_order(rows_of(frame.to_arrow()))


@pytest.mark.parametrize("sql", queries.DECLINED)
def test_what_substrait_cannot_express_is_named(sql):
    with pytest.raises(SubstraitError, match=queries.DECLINED[sql]):
        queries.context().sql(sql).to_substrait()


def test_legacy_mode_declares_that_sums_wrap_around():
    legacy, ansi = queries.context(ansi=False), queries.context()
    written = legacy.sql("SELECT l + 1 AS n FROM t").to_substrait()
    with pytest.raises(
        SubstraitError, match="function add with overflow SILENT is not supported; the engine has ERROR"
    ):
        ansi.substrait(written)
    with pytest.raises(SubstraitError, match="outside of ANSI mode cannot be written"):
        legacy.sql("SELECT CAST(s AS int) FROM t").to_substrait()


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_timestamps_are_shown_in_the_time_zone_of_the_context(zone):
    moments = pa.array([1_700_000_000_000_000, None, 0], pa.timestamp("us", tz="UTC"))
    context = kq.ExecutionContext(time_zone=zone)
    context.register_arrow("moments", pa.table({"at": moments}))
    frame = context.sql(
        "SELECT at, CAST(at AS string), CAST(at AS date) FROM moments WHERE at > TIMESTAMP '1969-01-01'"
    )
    read = context.substrait_query(frame.to_substrait())
    assert read.plan == frame.plan
    assert context.run(read).equals(frame.to_arrow())
    with pytest.raises(SubstraitError, match="hour of timestamp cannot be written"):
        context.sql("SELECT hour(at) FROM moments").to_substrait()


def test_plans_of_files_run_without_a_table(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(queries.T, path)
    context = kq.ExecutionContext()
    context.register_parquet("t", str(path))
    frame = context.sql("SELECT i, s FROM t WHERE i > 1")
    other = kq.ExecutionContext()
    with pytest.raises(SubstraitError, match="unknown table t; the tables are \\(none\\)"):
        kq.plan_from_substrait(frame.to_substrait(), other)
    # a scan of a source that is not registered is written with its files
    context.register_arrow("t", queries.U)
    written = frame.to_substrait()
    assert b"t.parquet" in written
    assert kq.plan_from_substrait(written).to_arrow().equals(frame.to_arrow())
    path.unlink()
    with pytest.raises(kq.KQueryError, match=r"t\.parquet"):
        kq.plan_from_substrait(written)


def test_paths_of_files_are_uris(tmp_path):
    """Only paths of the kind ``uri_path_glob`` are globs."""
    context = kq.ExecutionContext()
    for number, name in enumerate(["a b", "r[1]", "r1"]):
        pq.write_table(pa.table({"i": [number]}), tmp_path / f"{name}.parquet")
    context.register_parquet("t", f"{tmp_path}/a b.parquet")
    frame = context.sql("SELECT i + 1 AS n FROM t")
    context.register_arrow("t", queries.U)
    plan = frame.to_substrait()
    path = f"{tmp_path}/a b.parquet"

    def rows_with(kind, uri):
        edited = parse_plan(plan)
        (item,) = edited.relations[0].root.input.project.input.read.local_files.items
        assert item.uri_file == path
        setattr(item, kind, uri)
        return kq.plan_from_substrait(edited.SerializeToString()).to_arrow().to_pylist()

    assert rows_with("uri_file", f"file://{tmp_path}/a%20b.parquet") == [{"n": 1}]
    assert rows_with("uri_path_glob", f"{tmp_path}/r[1].parquet") == [{"n": 3}]
    for uri in (f"{tmp_path}/r[1].parquet", f"file://{tmp_path}/r%5B1%5D.parquet"):
        with pytest.raises(SubstraitError, match=r"r\[1\]\.parquet has glob characters"):
            rows_with("uri_file", uri)


def test_plan_is_read_from_a_file_with_tables_of_all_kinds(tmp_path):
    path = tmp_path / "u.parquet"
    pq.write_table(queries.U, path)
    frame = queries.context().sql("SELECT i, v FROM t JOIN u ON i = k")
    file = tmp_path / "plan.bin"
    file.write_bytes(frame.to_substrait())
    read = kq.plan_from_substrait(file, {"t": queries.T, "u": path})
    assert in_any_order(rows_of(read.to_arrow())) == in_any_order(rows_of(frame.to_arrow()))
    assert read.columns == ["i", "v"]
    assert read.filter("i > 1").count() == 2  # it is a DataFrame like any other


@pytest.mark.parametrize("terms", [31, 40, 150])
def test_expressions_that_are_nested_too_deeply_are_declined(terms):
    context = queries.context()
    shorter = context.sql("SELECT i" + " + 1" * 30 + " AS n FROM t")
    assert rows_of(context.substrait(shorter.to_substrait()).to_arrow()) == rows_of(shorter.to_arrow())
    with pytest.raises(SubstraitError, match="nested too deeply to be written as Substrait"):
        context.sql("SELECT i" + " + 1" * terms + " AS n FROM t").to_substrait()


def test_names_that_differ_only_in_case_are_read_by_position():
    context = kq.ExecutionContext()
    context.register_arrow("a", pa.table({"id": [1, 2]}))
    context.register_arrow("b", pa.table({"ID": [2, 3]}))
    plan = context.sql("SELECT a.id, b.ID FROM a JOIN b ON a.id = b.ID").to_substrait()
    frame = context.substrait(plan)
    assert frame.columns == ["id", "ID"]
    assert rows_of(frame.to_arrow()) == [(2, 2)]


@pytest.mark.parametrize(
    ("plan", "tables", "message"),
    [
        (1, None, "takes the bytes of a plan or the path of a file, not int"),
        (Path("/missing/plan"), None, "cannot read the plan /missing/plan"),
        (b"", [1], "tables must be an ExecutionContext or a dict of tables by name, not list"),
        (b"\xff\xff", None, "these bytes are not a Substrait plan"),
        (b"", None, "the plan has 0 relations; it must have exactly one"),
    ],
)
def test_wrong_arguments_are_named(plan, tables, message):
    with pytest.raises(kq.KQueryError, match=message):
        kq.plan_from_substrait(plan, tables)


def test_large_tables_without_a_name_are_not_written_into_a_plan():
    context = kq.ExecutionContext()
    context.register_arrow("big", pa.table({"a": list(range(20_000))}))
    frame = context.table("big")
    frame.to_substrait()
    context.register_arrow("big", queries.U)
    with pytest.raises(
        SubstraitError, match="of more than 10,000 rows cannot be written as Substrait; register it"
    ):
        frame.to_substrait()


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    import sys

    from kquery_spark.frontends.substrait import messages

    messages.proto.cache_clear()
    monkeypatch.setitem(sys.modules, "substrait.proto", None)
    try:
        with pytest.raises(SubstraitError, match=r"pip install 'kquery-spark\[substrait\]'"):
            kq.plan_from_substrait(b"")
    finally:
        messages.proto.cache_clear()


def test_later_releases_of_the_package_are_named(monkeypatch):
    import substrait.proto

    from kquery_spark.frontends.substrait import messages

    class Plan:
        DESCRIPTOR = substrait.proto.Rel.DESCRIPTOR  # without URIs

    messages.proto.cache_clear()
    monkeypatch.setattr(substrait.proto, "Plan", Plan)
    try:
        with pytest.raises(SubstraitError, match="this release of the package substrait lacks fields"):
            kq.plan_from_substrait(b"")
    finally:
        messages.proto.cache_clear()

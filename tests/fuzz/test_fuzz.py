"""The fuzzer: it repeats itself, its queries are valid, it finds and shrinks a planted mistake."""

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

from kquery_spark.fuzz import oracle as oracle_module
from kquery_spark.fuzz.expressions import Expr
from kquery_spark.fuzz.generate import Case, Generator
from kquery_spark.fuzz.oracle import CaseOutcome, Oracle
from kquery_spark.fuzz.queries import Derived, Item, JoinedTables, Scan, Select, SetOperation
from kquery_spark.fuzz.record import _MAX_REASONS, Record
from kquery_spark.fuzz.report import Mismatch, as_pytest
from kquery_spark.fuzz.shrink import shrink
from kquery_spark.fuzz.store import TableStore
from kquery_spark.fuzz.tables import FuzzTable

T = FuzzTable("t", pa.table({"a": pa.array([1, 2, None], pa.int32()), "b": ["x", None, "z"]}), 3)


def column(name, kind="int"):
    return Expr(name, kind)


def test_the_same_seed_gives_the_same_cases_and_another_gives_others():
    def strings(seed):
        generator = Generator(seed)
        return [generator.next().query.sql() for _ in range(40)]

    assert strings(5) == strings(5)
    assert strings(5) != strings(6)


def test_cases_have_every_kind_of_clause_type_and_table():
    generator = Generator(3)
    cases = [generator.next() for _ in range(600)]
    text = "\n".join(case.query.sql() for case in cases)
    words = ("WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "DISTINCT", "UNION ALL", "INTERSECT", "EXCEPT",
             "LEFT SEMI JOIN", "LEFT ANTI JOIN", "FULL JOIN", "CROSS JOIN", "<=>", "sum(", "avg(", "count(DISTINCT", "ROLLUP(",
             "CUBE(", "rank() OVER (", ") OVER (", " ROWS BETWEEN ", " IN (SELECT", "NOT IN (SELECT", " EXISTS (SELECT", ">= (SELECT max")  # fmt: skip
    assert [word for word in words if word not in text] == []
    tables = [table.data for case in cases for table in case.tables]
    kinds = {str(field.type) for data in tables for field in data.schema}
    assert len(kinds) == 20
    assert {table.format for case in cases for table in case.tables} == {"parquet", "orc", "csv", "json"}
    assert any(data.num_rows == 0 for data in tables)
    assert any("nan" in str(data.to_pydict()) for data in tables)
    assert len({tuple(sorted(case.settings)) for case in cases}) == 8
    assert {case.when for case in cases} == {"always", "auto"}


@pytest.fixture
def oracle(spark):
    with TableStore(spark) as store:
        yield Oracle(spark, store)


def test_nearly_every_query_is_valid(spark):
    generator, bad = Generator(11), Counter()
    with TableStore(spark) as store:
        for _ in range(30):
            case = generator.next()
            store.register(case.tables)
            try:
                spark.sql(case.query.sql())
            except oracle_module.AnalysisException as error:
                bad[str(error)] += 1
    assert sum(bad.values()) <= 3, bad


def test_a_query_prints_as_sql():
    inner = Select(
        (Item(column("a"), "k", key=True), Item(Expr("count(*)", "bigint"), "n", call=True)), Scan("t")
    )
    joined = JoinedTables(
        Derived(inner, "d"), Scan("u"), "LEFT", Expr("({0} = {1})", "boolean", (column("k"), column("c")))
    )
    query = Select(
        (Item(column("n"), "n"),), joined, where=Expr("true", "boolean"), order=(" DESC",), limit=3
    )
    assert query.sql() == (
        "SELECT n AS n FROM (SELECT a AS k, count(*) AS n FROM t GROUP BY a) AS d LEFT JOIN u ON (k = c) "
        "WHERE true ORDER BY n DESC LIMIT 3"
    )
    assert SetOperation(inner, inner, "EXCEPT").sql().count("SELECT") == 2


def test_shrinking_keeps_what_matters_and_drops_the_rest():
    guilty = Expr(
        "upper({0})",
        "string",
        (Expr("concat({0}, {1})", "string", (column("b", "string"), Expr("'a'", "string"))),),
    )
    query = Select(
        (Item(column("a"), "x"), Item(guilty, "y"), Item(column("a"), "z")),
        JoinedTables(
            Scan("t"), Scan("u"), "INNER", Expr("({0} = {1})", "boolean", (column("a"), column("c")))
        ),
        where=Expr("({0} > 1)", "boolean", (column("a"),)),
        order=("", "", " DESC"),
        limit=9,
    )
    other = FuzzTable("u", pa.table({"c": [1] * 50}))
    case = Case((T, other), query, {"spark.kquery.smallBytes": "0", "spark.kquery.batchRows": "7"})

    def still_fails(smaller):
        tables = {table.name: table.data for table in smaller.tables}
        return (
            "upper(" in smaller.query.sql() and "t" in tables and "x" in str(tables["t"].to_pydict().get("b"))
        )

    small = shrink(case, still_fails)
    assert (
        small.query.sql() == "SELECT upper(b) AS y FROM t"
        or small.query.sql() == "SELECT upper('a') AS y FROM t"
    )
    assert small.settings == {}
    assert [table.name for table in small.tables] == ["t"]
    assert small.tables[0].data.num_rows == 1
    assert small.tables[0].pieces == 1


def test_shrinking_stops_after_its_attempts():
    tried = []
    case = Case((T,), Select((Item(column("a"), "x"), Item(column("b", "string"), "y")), Scan("t")))
    assert shrink(case, lambda smaller: bool(tried.append(smaller)), attempts=3) == case
    assert len(tried) == 3


def test_a_planted_wrong_answer_is_found_shrunk_and_printed_as_a_test(oracle, monkeypatch):
    honest = oracle_module.kquery_plan

    def lies_about_b(frame, **options):
        fast = honest(frame, **options)
        return fast.filter("y <> 'z'") if "y" in fast.columns else fast

    monkeypatch.setattr(oracle_module, "kquery_plan", lies_about_b)
    query = Select((Item(column("a"), "x"), Item(column("b", "string"), "y")), Scan("t"))
    case = Case((T,), query)
    outcome = oracle.run(case)
    assert outcome.kind in ("rows", "schema")
    small = shrink(case, lambda smaller: oracle.run(smaller).kind == outcome.kind, attempts=25)
    assert small.query.sql().startswith("SELECT b AS y FROM t") or "y" in small.query.sql()
    text = str(Mismatch(1, 2, case, small, outcome))
    compile(text, "repro.py", "exec")
    assert "def test_seed_1_case_2(spark):" in text


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("table_format", ["parquet", "json"])
def test_a_printed_test_runs_and_fails_or_passes_by_itself(spark, local, table_format):
    query = Select((Item(column("a"), "x"), Item(column("b", "string"), "y")), Scan("t"), order=("", " DESC"))
    case = Case((replace(T, format=table_format),), query, {"spark.kquery.smallBytes": "0"})
    text = as_pytest(case, "it works", local)
    module = {}
    exec(text, module)
    module["test_it_works"](spark)
    assert spark.conf.get("spark.kquery.smallBytes", None) is None
    assert "ordered=True" in text
    broken = text.replace("expected = spark.sql(sql)", "expected = spark.sql(sql).filter('x = 1')")
    exec(broken, module)
    with pytest.raises(AssertionError):
        module["test_it_works"](spark)


def test_outcomes_tell_failures_apart(oracle, monkeypatch):
    def run(sql_text):
        return oracle.run(Case((T,), Select((Item(Expr(sql_text, "int"), "x"),), Scan("t"))))

    assert run("no_such_column").kind == "invalid"
    assert run("(a + 2147483647)").kind == "both fail"
    assert run("a").kind == "same"

    def broken(frame, **options):
        raise RuntimeError("[SOME_CLASS] of trouble")

    monkeypatch.setattr(oracle_module, "kquery_plan", broken)
    outcome = run("a")
    assert (outcome.kind, outcome.signature, outcome.mismatch) == ("only engine fails", "SOME_CLASS", True)
    assert not CaseOutcome("both fail").mismatch


def test_a_table_names_its_columns():
    assert replace(T, pieces=1).columns() == [("a", "int"), ("b", "string")]


def test_a_record_counts_known_reasons_after_the_list_of_reasons_is_full() -> None:
    record = Record()
    for number in range(_MAX_REASONS):
        record.add("query", "parquet", True, CaseOutcome("fallback", f"reason {number}"))
    record.add("query", "parquet", True, CaseOutcome("fallback", "reason 0"))
    record.add("query", "parquet", True, CaseOutcome("fallback", "a new reason"))
    assert record.reasons["fallback: reason 0"] == 2
    assert len(record.reasons) == _MAX_REASONS

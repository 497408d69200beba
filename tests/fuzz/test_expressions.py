"""Batches of random expressions in Spark, by kquery_plan and without Spark: every form is valid, every answer Spark's."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from kquery_spark import ExecutionContext
from kquery_spark.errors import KQueryError
from kquery_spark.expr.properties import is_constant
from kquery_spark.fuzz import batch_oracle
from kquery_spark.fuzz.batch_oracle import BatchOracle
from kquery_spark.fuzz.batches import Batch, _table, random_batch
from kquery_spark.fuzz.expressions import Expr, random_call
from kquery_spark.fuzz.grammar import GENERIC, INEXACT, RAISING, SAFE, parse_form
from kquery_spark.fuzz.kinds import KINDS, LITERALS, NESTED
from kquery_spark.fuzz.settings import LENIENT, UNCOMPILED, applied
from kquery_spark.fuzz.store import TableStore
from kquery_spark.fuzz.tables import FORMATS, FuzzTable, wide_table
from kquery_spark.verify import compare_tables

FORMS = [form for table in (SAFE, GENERIC, RAISING, INEXACT) for forms in table.values() for form in forms]
ROWS = pa.table(
    {
        "id": pa.array([0, 1, 2], pa.int32()),
        "grp": pa.array([1, 1, 2], pa.int32()),
        "i": pa.array([7, None, 2**31 - 1], pa.int32()),
        "s": ["a", "", None],
    }
)
T = FuzzTable("t", ROWS, 3)
NUMBER, TEXT = Expr("i", "int"), Expr("s", "string")


@pytest.fixture(scope="module")
def store(spark):
    with TableStore(spark) as tables:
        yield tables


def outcomes(spark, store, batch):
    return [(judged.expr.sql(), judged.outcome.kind) for judged in BatchOracle(spark, store).run(batch)]


def test_a_form_names_its_arguments_and_the_variables_of_its_lambdas():
    form = parse_form("int", "zip({ints}, (p, x) -> {int with p:struct<x:int,s:string>,x:int}, {any})")
    assert form.text == "zip({0}, (p, x) -> {1}, {2})"
    assert [arg.kind for arg in form.arguments] == ["array<int>", "int", "any"]
    assert form.arguments[1].variables == (("p", "struct<x:int,s:string>"), ("x", "int"))


def test_every_form_is_valid_and_of_its_kind(spark, store):
    table = next(t for t in (wide_table(Random(seed), "wide") for seed in range(50)) if t.format == "parquet")
    columns = {kind: name for name, kind in table.columns()}
    columns |= {kind: strings[0] for kind, strings in LITERALS.items() if kind not in columns}
    columns |= {"any": columns["int"], "same": columns["int"]}
    strings = {
        Expr(f.text, f.kind, tuple(Expr(columns[arg.kind], arg.kind) for arg in f.arguments)).sql(): f.kind
        for f in FORMS
    }
    strings |= {literal: kind for kind, literals in LITERALS.items() for literal in literals}
    store.register([table])
    query = ", ".join(f"{text} AS c{n}" for n, text in enumerate(strings))
    schema = spark.sql(f"SELECT {query} FROM wide").schema
    kinds = {text: field.dataType.simpleString() for text, field in zip(strings, schema, strict=True)}
    assert [(text, kinds[text]) for text, kind in strings.items() if not kinds[text].startswith(kind)] == []


# What changes constants before the plan can be looked at.
_REWRITES = (
    *(
        "ConstantFolding",
        "NullPropagation",
        "FoldablePropagation",
        "SimplifyConditionals",
        "BooleanSimplification",
    ),
    *(
        "SimplifyCasts",
        "SimplifyBinaryComparison",
        "OptimizeIn",
        "PushFoldableIntoBranches",
        "LikeSimplification",
    ),
    *(
        "ReplaceNullWithFalseInPredicate",
        "ReorderAssociativeOperator",
        "CombineConcats",
        "OptimizeCsvJsonExprs",
    ),
    *("SimplifyExtractValueOps", "ConvertToLocalRelation"),
)


def test_constants_are_those_that_spark_folds(spark):
    fillings = {"any": "1", "same": "1"} | {kind: strings[0] for kind, strings in LITERALS.items()}
    strings = []
    for form in FORMS:
        args = (
            {its: name for name, its in arg.variables}.get(arg.kind, fillings[arg.kind])
            for arg in form.arguments
        )
        text = form.text.format(*args)
        # NULLIF compares a column of a projection that Spark puts below
        if not text.startswith("nullif("):
            strings.append(text)
    context = ExecutionContext()
    context.register_arrow("t", pa.table({"id": [1]}))
    ours = {}
    for text in strings:
        try:
            plan = context.sql(f"SELECT {text} AS x FROM t").plan
        except KQueryError:
            continue
        ours[text] = is_constant(next(iter(plan.expressions)))
    assert len(ours) > 400
    excluded = ",".join(f"org.apache.spark.sql.catalyst.optimizer.{rule}" for rule in _REWRITES)
    query = ", ".join(f"{text} AS c{n}" for n, text in enumerate(ours))
    with applied(spark, {"spark.sql.optimizer.excludedRules": excluded}):
        plan = spark.sql(f"SELECT {query} FROM range(1)")._jdf.queryExecution().optimizedPlan()
    columns = plan.projectList()
    folded = {text: columns.apply(n).child().foldable() for n, text in enumerate(ours)}
    assert [(text, folded[text]) for text in ours if ours[text] != folded[text]] == []


def test_expressions_are_of_every_kind_and_rarely_constant():
    rng, columns = Random(1), wide_table(Random(2), "t").columns()
    exprs = [random_call(rng, columns, 2, can_raise=True) for _ in range(3000)]
    assert {expr.kind for expr in exprs} == set(KINDS)
    assert len({text for expr in exprs for text in expr.strings()} & {form.text for form in FORMS}) > 290
    names = {name for name, _ in columns}
    assert sum(1 for expr in exprs if names.isdisjoint(expr.strings())) < len(exprs) / 20


def test_a_batch_is_the_same_whatever_ran_before():
    def verdict(seed, number):
        batch = random_batch(seed, number)
        return batch.sql(), batch.settings, str(batch.table.data.to_pydict())

    first = verdict(3, 7)
    _table.cache_clear()
    assert verdict(3, 7) == first != verdict(4, 7)
    batches = [random_batch(1, number) for number in range(80)]
    assert {batch.shape for batch in batches} == {"projected", "condition", "aggregate", "window"}
    assert {batch.table.format for batch in batches} == set(FORMATS)
    assert {batch.ansi for batch in batches} == {True, False}
    assert any("spark.sql.optimizer.excludedRules" in batch.settings for batch in batches)


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_table_of_each_format_reads_alike_everywhere(spark, store, table_format):
    table = next(
        t
        for t in (wide_table(Random(seed), f"w_{table_format}") for seed in range(99))
        if t.format == table_format and t.data.num_rows > 1
    )
    store.register([table])
    frame = spark.table(table.name)
    assert frame.count() == table.data.num_rows
    context = store.context([table], batch_oracle.engine_config({}))
    expected, actual = frame.toArrow(), context.sql(f"SELECT * FROM {table.name}").to_arrow()
    assert compare_tables(expected, actual) == []
    if table_format in ("parquet", "orc"):
        assert compare_tables(table.data, expected) == []


@pytest.mark.parametrize("shape", ["projected", "condition", "aggregate", "window"])
def test_outcomes_are_distinguished(spark, store, shape):
    strings = {
        "projected": "{}",
        "condition": "({} IS NULL)",
        "aggregate": "max({})",
        "window": "lag({}) OVER (PARTITION BY grp ORDER BY id)",
    }
    raising = "both fail" if shape == "projected" else "not compared"
    cases = {"(i % 7)": "same", "(i + 1)": raising, "upper(s)": "same", "size(sentences(s))": "fallback",
             "no_such_function(i)": "invalid", "CAST(s AS INT)": raising, "try_add(i, 1)": "same"}  # fmt: skip
    exprs = [
        Expr(strings[shape].format("{0}"), "int", (Expr(text.replace("(i", "({0}"), "int", (NUMBER,)),))
        for text in cases
    ]
    found = outcomes(spark, store, Batch(T, shape, tuple(exprs)))
    assert [kind for _, kind in found] == list(cases.values()), found


def test_in_lenient_mode_nothing_is_raised(spark, store):
    exprs = (Expr("({0} + 1)", "int", (NUMBER,)), Expr("CAST({0} AS INT)", "int", (TEXT,)))
    assert {kind for _, kind in outcomes(spark, store, Batch(T, "projected", exprs, LENIENT))} == {"same"}


def test_a_wrong_column_and_a_failing_one_are_found_in_a_batch(spark, store, monkeypatch):
    honest = batch_oracle.kquery_plan

    def lies(frame, **options):
        fast = honest(frame, **options)
        if any("reverse" in text for text in frame.columns):
            raise RuntimeError("trouble")
        return fast.withColumn("c1", fast.c1.substr(1, 0)) if "c1" in fast.columns else fast

    monkeypatch.setattr(batch_oracle, "kquery_plan", lies)
    exprs = (Expr("length({0})", "int", (TEXT,)), Expr("concat({0}, 'x')", "string", (TEXT,)))
    found = outcomes(spark, store, Batch(T, "projected", exprs))
    assert [kind for _, kind in found] == ["same", "rows"]


def test_settings_come_back(spark):
    before = spark.conf.get("spark.sql.session.timeZone")
    with applied(spark, UNCOMPILED | {"spark.sql.session.timeZone": "Asia/Tokyo"}):
        assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    assert spark.conf.get("spark.sql.session.timeZone") == before
    assert NESTED["ints"] in KINDS

"""Short queries that stand for plans of any size are refused early, with an error that names what is too large."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.frontends.sql.analyzer.select_block import SelectAnalyzer


def cube(keys: int) -> str:
    return f"SELECT count(*) FROM t GROUP BY CUBE({', '.join(f'id + {i}' for i in range(keys))})"


def doubled_items(count: int) -> str:
    items = ", ".join(f"a{i - 1} + a{i - 1} AS a{i}" for i in range(1, count))
    return f"SELECT id AS a0, {items} FROM t"


def doubled_tables(count: int) -> str:
    tables = [
        f"c{i} AS (SELECT a.id FROM c{i - 1} a JOIN c{i - 1} b ON a.id = b.id)" for i in range(1, count)
    ]
    return f"WITH c0 AS (SELECT id FROM t), {', '.join(tables)} SELECT count(*) AS n FROM c{count - 1}"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (cube(50), "more than 4096 grouping sets are not supported"),
        (
            cube(7) + ", CUBE(" + ", ".join(f"id - {i}" for i in range(7)) + ")",
            "more than 4096 grouping sets",
        ),
        (doubled_items(100), "expand to more than 100000 operators"),
        (
            "SELECT * FROM range(-9000000000000000000, 9000000000000000000)",
            "range of more than 20000000 rows",
        ),
        (doubled_tables(30), "more than 2000 uses of tables of WITH"),
    ],
    ids=["CUBE", "product of CUBEs", "aliases", "range", "WITH"],
)
def test_short_queries_of_huge_plans_are_refused(query: str, message: str):
    context = kq.ExecutionContext()
    context.register_arrow("t", pa.table({"id": [1, 2, 3]}))
    with pytest.raises(kq.errors.KQueryError, match=message):
        context.sql(query)


@pytest.mark.parametrize("template", ["{}", "{} + 1", "1 - {}"])
def test_analysis_of_nested_subqueries_without_names_is_not_exponential(template: str):
    query, depth = "1", 14
    for _ in range(depth):
        query = f"(SELECT {template.format(query)} FROM (SELECT 1) AS t)"
    context, analyses = kq.ExecutionContext(), []
    analyze = SelectAnalyzer.analyze

    def counted(self: SelectAnalyzer, *args: Any) -> Any:
        analyses.append(self)
        assert len(analyses) < 100
        return analyze(self, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SelectAnalyzer, "analyze", counted)
        assert len(context.sql(f"SELECT {query}").columns) == 1
    assert len(analyses) >= depth


def test_ranges_with_large_steps_do_not_overflow():
    rows = kq.ExecutionContext().sql(
        "SELECT * FROM range(-9000000000000000000, 9223372036854775807, 9000000000000000000)"
    )
    assert rows.to_arrow().to_pydict() == {"id": [-9000000000000000000, 0, 9000000000000000000]}


def test_queries_of_usual_sizes_are_not():
    context = kq.ExecutionContext()
    context.register_arrow("t", pa.table({"id": [1, 2, 3]}))
    assert context.sql(cube(4)).to_arrow().num_rows > 3
    assert context.sql(doubled_items(8)).to_arrow()["a7"].to_pylist() == [128, 256, 384]
    assert context.sql(doubled_tables(4)).to_arrow()["n"].to_pylist() == [3]

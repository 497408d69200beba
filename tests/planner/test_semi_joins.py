"""Rows that a join will drop do not reach the shuffle or the groups, and no answer changes by it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.config.engine import EngineConfig

SHUFFLES = EngineConfig(parallelism=2, small_bytes=0, broadcast_bytes=12_000, split_bytes=40_000)
ONE_TASK = replace(SHUFFLES, small_bytes=1 << 40)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """sales: many, in no order of their keys, some NULL. parts: few, of 20 kinds. stock: some of each part."""
    directory = tmp_path_factory.mktemp("semi")
    rng = np.random.default_rng(11)
    part = rng.integers(0, 1_000, 40_000)
    sales = {
        "part": pa.array(part, mask=part % 97 == 0),
        "qty": rng.integers(1, 200, len(part)),
        "total": rng.integers(1, 1 << 30, len(part)),
        "price": rng.integers(1, 1 << 20, len(part), np.int32),
    }
    parts = {"id": np.arange(1_000), "kind": np.arange(1_000) % 20, "size": np.arange(1_000) % 7}
    held = rng.permutation(np.repeat(np.arange(1_000), 64))
    stock = {"held": held, "shop": rng.integers(0, 9, len(held)), "left": rng.integers(0, 99, len(held))}
    for name, columns in {"sales": sales, "parts": parts, "stock": stock}.items():
        pq.write_table(pa.table(columns), directory / f"{name}.parquet", row_group_size=4_000)
    return directory


def frame(sql: str, directory: Path, config: EngineConfig) -> kq.DataFrame:
    context = kq.ExecutionContext(config=config)
    for name in ("sales", "parts", "stock"):
        context.register_parquet(name, str(directory / f"{name}.parquet"))
    return context.sql(sql)


def check(sql: str, directory: Path, config: EngineConfig = SHUFFLES) -> str:
    """The stages of the query, whose rows are those of a run in one task."""
    spread = frame(sql, directory, config)
    expected = frame(sql, directory, ONE_TASK).collect()
    assert expected
    assert sorted(map(repr, spread.collect())) == sorted(map(repr, expected))
    return spread.explain().split("== Stages ==")[1]


KEEPS_SALES = "JoinExec: semi, build=right, on=[#part = #id]"


def test_a_side_is_cut_down_by_a_filtered_table_under_the_other_side(directory: Path) -> None:
    stages = check(
        "SELECT qty, n FROM sales JOIN (SELECT id, count(*) n FROM parts JOIN stock ON id = held WHERE kind = 3 GROUP BY id)"
        " ON part = id WHERE qty > n",
        directory,
    )
    assert KEEPS_SALES in stages


def test_keys_that_equal_the_filtered_ones_count_too(directory: Path) -> None:
    stages = check(
        "SELECT qty, n FROM sales JOIN (SELECT held, min(left) n FROM parts JOIN stock ON id = held WHERE kind = 3 GROUP BY held)"
        " ON part = held WHERE qty > n",
        directory,
    )
    assert "JoinExec: semi, build=right, on=[#part = #id]" in stages


@pytest.mark.parametrize("average", ["avg(price)", "0.2 * avg(CAST(price AS DECIMAL(15, 2)))"])
def test_groups_without_a_match_are_left_out_before_grouping(average: str, directory: Path) -> None:
    stages = check(
        f"SELECT id, a FROM parts JOIN (SELECT part, {average} a, count(*) FROM sales GROUP BY part)"
        " ON id = part WHERE kind = 3",
        directory,
    )
    first = stages.split("stage-2")[0]
    assert "AggregateExec: partial" in first and KEEPS_SALES in first


def test_both_at_once_as_a_correlated_average_needs_them(directory: Path) -> None:
    stages = check(
        "SELECT sum(total) s, count(*) c FROM sales, parts WHERE id = part AND kind = 3"
        " AND qty < (SELECT 0.5 * avg(qty) FROM sales WHERE part = id)",
        directory,
    )
    assert stages.count("JoinExec: semi") == 2


@pytest.mark.parametrize(
    "sql",
    [
        # an overflow of a group that no query reads raises the error of Spark all the same
        "SELECT id, s FROM parts JOIN (SELECT part, sum(total) s FROM sales GROUP BY part) ON id = part WHERE kind = 3",
        "SELECT id, s FROM parts JOIN (SELECT part, sum(CAST(price AS DECIMAL(38, 2))) s FROM sales GROUP BY part)"
        " ON id = part WHERE kind = 3",
        # a condition raises an error for a group that no query reads, too
        "SELECT id, n FROM parts JOIN (SELECT part, count(*) n FROM sales GROUP BY part HAVING 10 div count(*) >= 0)"
        " ON id = part WHERE kind = 3",
        # so does an expression
        "SELECT id, n FROM parts JOIN (SELECT part, 10 div count(*) n FROM sales GROUP BY part) ON id = part WHERE kind = 3",
        # and so does a second key, for a row that no query reads
        "SELECT qty, left FROM sales JOIN (SELECT held, left FROM parts JOIN stock ON id = held WHERE kind = 3)"
        " ON part = held AND 1000 div qty = left",
        # nothing is filtered: every key is there
        "SELECT id, a FROM parts JOIN (SELECT part, avg(price) a FROM sales GROUP BY part) ON id = part",
        # groups without a match come out
        "SELECT id, a FROM (SELECT part, avg(price) a FROM sales GROUP BY part) LEFT JOIN"
        " (SELECT id FROM parts WHERE kind = 3) ON part = id",
        # NULL meets NULL
        "SELECT id, a FROM parts JOIN (SELECT part, avg(price) a FROM sales GROUP BY part) ON id <=> part WHERE kind = 3",
    ],
)
def test_no_semi_join_where_rows_or_errors_would_be_lost(sql: str, directory: Path) -> None:
    assert "JoinExec: semi" not in check(sql, directory)


def test_which_rows_a_limit_keeps_is_settled_once(directory: Path) -> None:
    few = "(SELECT id FROM parts WHERE kind = 3 LIMIT 10)"
    sql = f"SELECT qty, left FROM sales JOIN (SELECT held, left FROM {few} JOIN stock ON id = held) ON part = held"
    stages = frame(sql, directory, SHUFFLES).explain().split("== Stages ==")[1]
    assert "LimitExec: 10" in stages and "-> hash(#part)" in stages
    assert "JoinExec: semi" not in stages


@pytest.mark.parametrize("kind", ["LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI"])
def test_other_joins_keep_what_they_owe(kind: str, directory: Path) -> None:
    columns = "part, qty" if "LEFT " in kind else "part, qty, held, left"
    small = "(SELECT held, left FROM parts JOIN stock ON id = held WHERE kind = 3)"
    check(f"SELECT {columns} FROM sales {kind} JOIN {small} ON part = held", directory)
    if columns != "part, qty":
        check(f"SELECT {columns} FROM {small} {kind} JOIN sales ON part = held", directory)


def test_a_small_join_meets_in_one_task(directory: Path) -> None:
    sql = (
        "SELECT qty, left FROM sales JOIN stock ON part = held AND qty = left"
        " WHERE price > 1 AND total > 1 AND qty > 1 AND part > 1 AND left > 1 AND shop > 1 AND held > 1 AND left < 90 AND shop < 8"
    )
    assert "-> hash(#part" in check(sql, directory)
    assert "-> hash" not in check(sql, directory, replace(SHUFFLES, small_bytes=200_000))

"""Lambdas over arrays, side by side with Spark: NULL arrays and elements, columns of the row, errors of elements."""

from __future__ import annotations

import pytest

from tests.accelerate.checks import check, view_of_files
from tests.accelerate.test_nested_keys import ROWS

WHOLE = {
    "transform": "SELECT k, transform(a, x -> x * 2L + k), transform(fa, x -> -x) FROM lam",
    "with places": "SELECT k, transform(a, (x, i) -> coalesce(x, 0) % 10 + i * k), filter(a, (x, i) -> i >= 1) FROM lam",
    "filter": "SELECT k, filter(a, x -> x > 1), filter(fa, x -> x = 'NaN'), filter(a, x -> NULL) FROM lam",
    "exists": "SELECT k, exists(a, x -> x > 1), exists(fa, x -> x IS NULL), exists(a, x -> x > k) FROM lam",
    "forall": "SELECT k, forall(a, x -> x > 0), forall(fa, x -> x IS NOT NULL), forall(a, x -> x <> k) FROM lam",
    "in each other": "SELECT k, transform(a, x -> transform(fa, y -> y * x + k)), filter(array(a, NULL), b -> exists(b, x -> x = k)) FROM lam",
    "of structs": "SELECT k, transform(array(st, NULL), s -> s.s), filter(array(st), s -> s.x = -5)[0].f FROM lam WHERE st IS NOT NULL AND st.x = -5",
    "made of structs": "SELECT k, transform(a, x -> named_struct('x', x, 'st', st)) FROM lam",
    "with CASE": "SELECT k, transform(a, x -> CASE WHEN x > 1 THEN 10 / (x - 1) ELSE k END) FROM lam WHERE k < 5",
    "with texts": "SELECT k, transform(split(concat(st.s, ',b,c'), ','), w -> concat(upper(w), '-', ts)) FROM lam",
    "in conditions": "SELECT k FROM lam WHERE exists(a, x -> x = 2) AND NOT forall(fa, f -> f IS NULL)",
    "under aggregates": "SELECT k % 2, sum(size(filter(a, x -> x IS NOT NULL))) FROM lam GROUP BY 1",
    "over aggregates": "SELECT k % 2 g, transform(sort_array(collect_list(k)), x -> x + k % 2) FROM lam GROUP BY 1",
    "guarded": "SELECT k, CASE WHEN k > 100 THEN transform(a, x -> 1 / 0) END FROM lam",
    "an error behind what decides": "SELECT exists(array(k, 0), x -> 10 / x > 0), forall(array(-k, 0), x -> 1 / x > 0) FROM lam",
    "an error": "SELECT transform(a, x -> x + 2147483647) FROM lam",
    "an error that decides": "SELECT exists(array(0, k), x -> 10 / x > 0) FROM lam",
    "floats in keys": "SELECT x.k, y.k FROM lam x FULL JOIN lam y ON x.fa <=> y.fa",
    "of nothing": "SELECT transform(a, x -> x + 1), exists(a, x -> x > k) FROM lam WHERE k > 100",
}  # fmt: skip


@pytest.fixture(scope="module")
def rows(spark, tmp_path_factory):
    with view_of_files(spark, "lam", ROWS, tmp_path_factory.mktemp("rows")):
        yield


@pytest.mark.parametrize("name", WHOLE)
def test_whole_in_the_engine(spark, rows, name):
    check(spark.sql(WHOLE[name]), coverage=1.0)

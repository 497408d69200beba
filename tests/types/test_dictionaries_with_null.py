"""A user's dictionary may contain NULL. Queries have the same results as over strings without a dictionary."""

from __future__ import annotations

import pyarrow as pa
import pytest

import kquery_spark as kq

INDICES = pa.array([0, 1, None, 0, 2, 1], pa.int32())
DICTIONARY = pa.DictionaryArray.from_arrays(INDICES, pa.array([None, "b", "a"]))
PLAIN = pa.array([None, "b", None, None, "a", "b"])


@pytest.mark.parametrize(
    "query",
    [
        "SELECT s, k FROM t ORDER BY s NULLS LAST, k LIMIT 3",
        "SELECT s, k FROM t ORDER BY s DESC, k",
        "SELECT count(s) AS c, count(DISTINCT s) AS d, max(s) AS m, min(s) AS n FROM t",
        "SELECT s, count(*) AS n, count(s) AS c FROM t GROUP BY s ORDER BY s",
        "SELECT k FROM t WHERE s IS NULL ORDER BY k",
        "SELECT k, upper(s) AS u, coalesce(s, 'z') AS c, s = 'b' AS e, translate(s, 'a', 'x') AS x FROM t ORDER BY k",
        "SELECT t.k, u.k AS l FROM t LEFT JOIN t AS u ON t.s = u.s ORDER BY k, l",
        "SELECT k, row_number() OVER (ORDER BY s NULLS LAST, k) AS r, lag(s) OVER (ORDER BY k) AS l FROM t ORDER BY k",
        "SELECT first(s, true) AS f, collect_list(s) AS l FROM t",
    ],
)
def test_null_in_a_dictionary_is_null(query: str) -> None:
    rows = []
    for strings in (DICTIONARY, PLAIN):
        context = kq.ExecutionContext()
        context.register_arrow("t", pa.table({"s": strings, "k": range(len(strings))}))
        rows.append(context.sql(query).collect())
    assert rows[0] == rows[1]

"""Spark SQL in, the engine's plan out, printed: one entry for each idea of the importer."""

from __future__ import annotations

from typing import Any

import pytest

from kquery_spark.spark_bridge.jvm.calls import Jvm
from tests.frontends.catalyst.engine import take

PLANS = {
    "a_selection_and_a_computed_column": (
        "select id, i + 1 as next from t where b and i > 3",
        """
Projection: #id, #i + 1 AS next
  Filter: ((#b IS NOT NULL AND #i IS NOT NULL) AND #b) AND (#i > 3)
    Scan: t; projection=[id, i, b]
""",
    ),
    "a_rename_costs_no_node": (
        "select k as key, s as text from (select i as k, s from t)",
        """
Scan: t; projection=[i, s]
""",
    ),
    "an_aggregate_with_keys_and_plain_results": (
        "select i, sum(m) as total, count(*) as n from t group by i",
        """
Aggregate: groupExpr=[#i], aggregateExpr=[SUM(#m) AS total, COUNT(*) AS n]
  Scan: t; projection=[i, m]
""",
    ),
    "results_computed_from_aggregates": (
        "select i + 1 as k, sum(m) * 2 + count(*) as x from t group by i",
        """
Projection: #i + 1 AS k, (#sum * 2) + CAST(#count AS decimal(20,0)) AS x
  Aggregate: groupExpr=[#i], aggregateExpr=[SUM(#m) AS sum, COUNT(*) AS count]
    Scan: t; projection=[i, m]
""",
    ),
    "one_aggregate_used_twice": (
        "select sum(id) + 1 as a, sum(id) as b, max(id) - sum(id) as c from t",
        """
Projection: #sum + 1 AS a, #sum, #max - #sum AS c
  Aggregate: groupExpr=[], aggregateExpr=[SUM(#id) AS sum, MAX(#id) AS max]
    Scan: t; projection=[id]
""",
    ),
    "a_grouping_expression": (
        "select i % 3 as k, count(*) as n from t group by i % 3",
        """
Aggregate: groupExpr=[#_groupingexpression], aggregateExpr=[COUNT(*) AS n]
  Projection: #i % 3 AS _groupingexpression
    Scan: t; projection=[i]
""",
    ),
    "a_sum_of_short_decimals": (
        "select i, sum(cast(m as decimal(5,2))) as x from t group by i",
        """
Aggregate: groupExpr=[#i], aggregateExpr=[SUM(CAST(#m AS decimal(5,2))) AS x]
  Scan: t; projection=[i, m]
""",
    ),
    "distinct_rows": (
        "select distinct i, b from t",
        """
Aggregate: groupExpr=[#i, #b], aggregateExpr=[]
  Scan: t; projection=[i, b]
""",
    ),
    "having": (
        "select i, count(*) as n from t group by i having count(*) > 3",
        """
Filter: #n > 3
  Aggregate: groupExpr=[#i], aggregateExpr=[COUNT(*) AS n]
    Scan: t; projection=[i]
""",
    ),
    "a_self_join_gives_the_second_table_other_names": (
        "select t1.id, t2.s from t t1 join t t2 on t1.i = t2.i and t1.id < t2.id",
        """
Projection: #id, #s
  Join: inner, on=[#i = #i_2], condition=#id < #id_2
    Filter: #i IS NOT NULL AND #id IS NOT NULL
      Scan: t; projection=[id, i]
    Filter: #i_2 IS NOT NULL AND #id_2 IS NOT NULL
      Projection: #id AS id_2, #i AS i_2, #s
        Scan: t; projection=[id, i, s]
""",
    ),
    "an_outer_join_with_a_residual_condition": (
        "select t.id, pt.k from t left join pt on t.id = pt.id and t.i > pt.k",
        """
Projection: #id, #k
  Join: left, on=[#id = #id_2], condition=#i > #k
    Scan: t; projection=[id, i]
    Filter: #id_2 IS NOT NULL AND #k IS NOT NULL
      Projection: #id AS id_2, #k
        Scan: pt; projection=[id, k]
""",
    ),
    "a_null_safe_key": (
        "select t.id from t join pt on t.i <=> pt.k",
        """
Projection: #id
  Join: inner, on=[#i <=> #k]
    Scan: t; projection=[id, i]
    Scan: pt; projection=[k]
""",
    ),
    "exists": (
        "select id from t where exists (select 1 from pt where pt.id = t.id)",
        """
Join: semi, on=[#id = #id_2]
  Scan: t; projection=[id]
  Projection: #id AS id_2
    Scan: pt; projection=[id]
""",
    ),
    "exists_as_a_value": (
        "select id, exists (select 1 from pt where pt.id = t.id) as e from t",
        """
Join: existence, on=[#id = #id_2]
  Scan: t; projection=[id]
  Projection: #id AS id_2
    Scan: pt; projection=[id]
""",
    ),
    "not_in": (
        "select id from t where i not in (select k from pt)",
        """
Projection: #id
  Join: anti null-aware, on=[#i = #k]
    Scan: t; projection=[id, i]
    Scan: pt; projection=[k]
""",
    ),
    "not_in_of_two_columns": (
        "select id from t where (i, s) not in (select k, p from pt)",
        """
Projection: #id
  Join: anti, condition=((#i = #k) OR (#i = #k) IS NULL) AND ((CAST(#s AS bigint) = #p_2) OR (CAST(#s AS bigint) = #p_2) IS NULL)
    Scan: t; projection=[id, i, s]
    Projection: #k, CAST(#p AS bigint) AS p_2
      Scan: pt; projection=[k, p]
""",
    ),
    "a_cross_join": (
        "select t.id, pt.k from t cross join pt",
        """
Join: inner
  Scan: t; projection=[id]
  Scan: pt; projection=[k]
""",
    ),
    "a_scalar_subquery_in_a_condition": (
        "select id from t where i > 0 and m > (select avg(m) from t)",
        """
Projection: #id
  Filter: CAST(#m AS decimal(11,6)) > #avg(m)
    Join: left
      Filter: (#i IS NOT NULL AND #m IS NOT NULL) AND (#i > 0)
        Scan: t; projection=[id, i, m]
      Projection: CAST(#avg / 100.0 AS decimal(11,6)) AS avg(m)
        Aggregate: groupExpr=[], aggregateExpr=[AVG(unscaled_value(#m_2)) AS avg]
          Projection: #m AS m_2
            Scan: t; projection=[m]
""",
    ),
    "scalar_subqueries_that_spark_merged": (
        "select id, (select max(k) from pt) as a, (select min(k) from pt) as b from t",
        """
Join: left
  Scan: t; projection=[id]
  Projection: #max(k) AS max(k)_2, #min(k) AS min(k)_2
    Aggregate: groupExpr=[], aggregateExpr=[MAX(#k), MIN(#k)]
      Scan: pt; projection=[k]
""",
    ),
    "order_limit_and_offset": (
        "select id from t order by i desc, id limit 10 offset 5",
        """
Projection: #id
  Limit: 10, offset=5
    Sort: #i DESC, #id ASC
      Scan: t; projection=[id, i]
""",
    ),
    "union_all_by_position": (
        "select id, i from t union all select id, k from pt",
        """
Union
  Scan: t; projection=[id, i]
  Projection: #id AS id_2, #k
    Scan: pt; projection=[id, k]
""",
    ),
    "a_column_twice": (
        "select i, i as j from t union all select k, k from pt",
        """
Union
  Projection: #i, #i AS i_2
    Scan: t; projection=[i]
  Projection: #k, #k AS k_2
    Scan: pt; projection=[k]
""",
    ),
    "in_lists": (
        "select id from t where i in (1, 2) and s in ('a', null)",
        """
Projection: #id
  Filter: (#i IN (1, 2)) AND (#s IN ('a', NULL))
    Scan: t; projection=[id, i, s]
""",
    ),
    "case_and_coalesce": (
        "select case when b then i else 0 end as c, if(i > 1, 'x', s) as d from t",
        """
Projection: CASE WHEN #b THEN #i ELSE 0 END AS c, CASE WHEN #i > 1 THEN 'x' ELSE #s END AS d
  Scan: t; projection=[i, s, b]
""",
    ),
    "partition_columns": (
        "select k from pt where p = '1'",
        """
Projection: #k
  Filter: #p IS NOT NULL AND (#p = 1)
    Scan: pt; projection=[k, p]; files pruned=12
""",
    ),
    "rows_are_counted_without_reading_a_column": (
        "select count(*) as n from t",
        """
Aggregate: groupExpr=[], aggregateExpr=[COUNT(*) AS n]
  Scan: t; projection=[]
""",
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_printed_plan(spark: Any, jvm: Jvm, zoo: None, name: str) -> None:
    query, expected = PLANS[name]
    assert str(take(spark, jvm, query).whole().plan) == expected.strip()

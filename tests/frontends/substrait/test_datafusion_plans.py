"""Plans of DataFusion that this engine runs with the same rows as DataFusion, or declines with a reason."""

from __future__ import annotations

import pytest

from kquery_spark.errors import SubstraitError
from tests.frontends.substrait import queries
from tests.frontends.substrait.engines import datafusion_context, datafusion_plan, in_any_order, rows_of

pytest.importorskip("substrait")

#: Queries with the same rows here and in DataFusion.
SAME = """
select i+1, l*2, i-l, -i, abs(i), l % 3 from t
select i/2, l/3, x/2 from t
select m+m, m-1, m*m, m*2, -m from t
select i=l, i<l, s<>'apple', s>='b', m<=2.00 from t
select i is null, s is not null, b is true, b is not true, b is false, b is not false, m is distinct from 1.10 from t
select case when i>2 then 'big' when i<0 then 'neg' else s end, coalesce(i,l,0), nullif(i,2), nvl(i,0) from t
select s like 'app%', s not like '%a%', s like '_anana', starts_with(s,'app'), ends_with(s,'pie'), contains(s,'a') from t
select upper(s), lower(s), trim(s), character_length(s), substring(s,2,3), substr(s,2), reverse(s), s || '!' from t
select extract(year from day), extract(month from ts), extract(day from day), date_part('hour',ts), date_part('quarter',day) from t
select i in (1,2,5), s in ('apple',''), i not in (1,2), l in (i*10,50) from t
select cast(i as bigint) a, cast(l as double) c, cast(m as double) d, cast(i as varchar) e, try_cast(s as int) f from t
select i between 0 and 2, l & 3, l | 3, l ^ 3, greatest(i,2), least(i,2) from t
select sum(i), sum(l), sum(m), avg(i), avg(m), min(s), max(day), count(*), count(i), count(distinct g) from t
select g, sum(i), max(ts), min(b) from t group by g
select g, count(*) filter (where i>1), sum(l) filter (where s is not null) from t group by g
select stddev(m), bool_and(b), bool_or(b) from t
select distinct g from t
select i from t union all select k from u
select i from t union select k from u
select i from t intersect select k from u
select i from t except select k from u
select t.i, u.v from t join u on t.i=u.k and t.l>u.k
select t.i, u.v from t left join u on t.i=u.k and u.v<>'two'
select t.i, u.v from t right join u on t.i=u.k
select t.i, u.v from t full join u on t.i=u.k
select t.i, u.v from t cross join u
select i from t where exists (select 1 from u where u.k=t.i)
select i from t where i in (select k from u)
select i, (select max(v) from u where u.k=t.i) from t
select i from t where l > (select avg(k) from u)
select a.i, b.i from t a join t b on a.i=b.i+1
select i, row_number() over (partition by g order by l) from t
select i, rank() over (order by g), dense_rank() over (order by g) from t
select i, sum(l) over (partition by g order by i rows between 1 preceding and current row) from t
select i, sum(l) over (partition by g order by i), count(*) over (partition by b) from t
select i, lag(i) over (order by l), lead(i,2,0) over (order by l), first_value(i) over (order by l) from t
select i, ntile(2) over (order by l), percent_rank() over (order by l), cume_dist() over (order by l) from t
select * from (select i, row_number() over (order by l desc) r from t) where r<=2
select 1, 'a', 1.5, true
select case g when 'a' then 1 when 'b' then 2 end, case i when 1 then 'x' else 'y' end from t
select count(1) from t, u where t.i = u.k
select count(*) from t where 1=0
select count(*) from t group by 'x'
select sum(l) over (order by day rows between 1 preceding and current row), min(day) over (partition by b) from t
select u.k, a.c from u left join lateral (select count(*) c from t where t.i=u.k) a on true
select * from (values (1,'a'),(2,null)) q(a,b)
select i from t order by s asc nulls first, i desc nulls last limit 2
select f+f, f/2, sum(f) over () from t
with q as (select g, sum(l) q from t group by g) select a.g, a.q from q a join q b on a.g=b.g
""".strip().splitlines()

#: Queries whose plans are declined, and what the error says.
DECLINED = {
    "select sum(l) over (order by day range between interval '1' day preceding and current row) from t": "writes frames with intervals as unbounded",
    "select row_number() over () from t": "function row_number: its window must have sort fields",
    "select sum(l) over (order by i range between 1 preceding and 1 following) from t": "a RANGE frame with an offset",
    "select cast(day as timestamp) from t": "precision_timestamp of precision 9 is not supported",
    "select i from t where i not in (select k from u)": "an anti join of DataFusion by #i, which may be NULL",
    "select i from t where not exists (select 1 from u where u.k=t.i)": "an anti join of DataFusion by #i, which may be NULL",
    "select g, b, sum(l) from t group by rollup(g,b)": "grouping sets of DataFusion are not supported",
    "select i from t where i = any(select k from u) or l > 20": "the join type 11 is not supported",
    "select concat(s, '!') from t": "function concat: engines disagree about NULL arguments",
    "select s like 'a\\_%' from t": "function like: its pattern must be a literal without a backslash",
    "select substr(s, 0) from t": "function substring: start 0 is not supported, as engines disagree about it",
    "select substr(s, -2, 1) from t": "function substring: start -2 and length 1 is not supported",
    "select power(x, 2) from t": "function power is not supported",
    "select day + interval '1' month from t": "a literal of the type interval_compound is not supported",
    "select null": "the type user_defined is not supported",
    "select arrow_cast(i, 'UInt32') from t": "variation 1 is not supported",
}


@pytest.fixture(scope="module")
def datafusion():
    return datafusion_context({"t": queries.T, "u": queries.U})


@pytest.mark.parametrize("sql", SAME)
def test_query_has_the_rows_of_datafusion(sql, datafusion):
    frame = queries.context().substrait(datafusion_plan(datafusion, sql))
    rows, expected = rows_of(frame.to_arrow()), rows_of(datafusion.sql(sql).to_arrow_table())
    assert expected
    assert in_any_order(rows) == in_any_order(expected)
    if "limit" in sql:
        assert rows == expected


@pytest.mark.parametrize("sql", DECLINED)
def test_query_is_declined_with_a_reason(sql, datafusion):
    plan = datafusion_plan(datafusion, sql)
    with pytest.raises(SubstraitError, match=DECLINED[sql]):
        queries.context().substrait(plan)


def test_not_exists_runs_if_the_plan_says_that_the_keys_are_never_null(datafusion):
    import pyarrow as pa

    table = pa.table({"a": [1, 2, 3]}, schema=pa.schema([pa.field("a", pa.int64(), nullable=False)]))
    datafusion.from_arrow(table, name="n1")
    datafusion.from_arrow(table.slice(1), name="n2")
    context = queries.context()
    context.register_arrow("n1", table)
    context.register_arrow("n2", table.slice(1))
    plan = datafusion_plan(datafusion, "select a from n1 where a not in (select a from n2)")
    assert rows_of(context.substrait(plan).to_arrow()) == [(1,)]


def test_quotients_of_decimals_are_rounded_as_in_spark(datafusion):
    """DataFusion itself truncates the digits that do not fit."""
    sql = "select m/3 from t where m is not null"
    rows = rows_of(queries.context().substrait(datafusion_plan(datafusion, sql)).to_arrow())
    assert rows == [(0.366667,), (-0.75,), (0.0,), (3.33,), (1.666667,)]

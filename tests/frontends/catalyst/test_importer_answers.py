"""Imported plans give Spark's rows: a zoo of everything the importer knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kquery_spark.errors import ExecutionError, Unsupported
from kquery_spark.spark_bridge.jvm import Jvm
from tests.conftest import SPARK_BEFORE_4_3
from tests.frontends.catalyst.engine import assert_same_rows, take

ZOO = """
select i, count(*), sum(m), avg(m), min(s), max(day) from t group by i;
select d, count(*) c from t group by d;
select sum(d), avg(d), sum(i), avg(i), sum(w), avg(w) from t;
select sum(distinct i), count(distinct s), count(distinct s, i) from t;
select i, sum(m) filter (where b) x, count(*) filter (where s is not null) y from t group by i;
select i + 1 k, sum(m) * 2 + count(*) s from t group by i + 1 having count(*) > 3 order by k;
select i, sum(m) + (select max(k) from pt) x from t group by i;
select sum(m + (select max(k) from pt)) x from t;
select 1 from t group by i;
select distinct i, b from t;
select count(*) from t;
select max(i) from t where id > 1000;
select sum(case when b then m else 0 end) x, count(if(i > 0, 1, null)) y from t;
select sum(cast(m as decimal(5,2))), avg(cast(m as decimal(5,2))) from t where m < 100;
select i, sum(cast(m as decimal(5,2))) x from t where m < 100 group by i;

select count(distinct i) a, sum(distinct m) b, count(*) c from t;
select b, first(x), last(x), any_value(x) from (select b, max(i) x from t group by b) group by b;
select stddev(m), stddev_pop(d), var_pop(i), variance(m), corr(i, id), covar_samp(i, id), skewness(i), kurtosis(m)
  from t where not isnan(d);
select percentile(m, 0.5), median(i), percentile(id, 0.25), max_by(s, id), min_by(i, id) from t;
select try_sum(i), try_avg(m), sum(id), bit_and(i), bit_xor(i), bool_and(b), every(i > 2), count_if(i > 2) from t;

select t1.id, t2.id id2 from t t1 join t t2 on t1.i = t2.i and t1.id < t2.id;
select t1.id, t2.s from t t1 left join t t2 on t1.s = t2.s and t1.m > t2.m;
select t1.id, t2.s from t t1 right join t t2 on t1.s = t2.s and t1.m > t2.m;
select t1.id, t2.id from t t1 full join (select * from t where i > 2) t2 on t1.id = t2.id and t1.b;
select t1.id, t2.id from t t1 join t t2 on t1.i <=> t2.i where t1.id < 20 and t2.id < 20;
select t1.id, t2.id from t t1 join t t2 on t1.d = t2.d;
select t1.k, t2.p, count(*) from pt t1, pt t2 where t1.id = t2.id group by t1.k, t2.p;
select count(*) from t t1 cross join pt where t1.i > pt.k;
select t1.id from t t1 left semi join t t2 on t1.i = t2.i and t1.id <> t2.id;
select t1.id from t t1 left anti join t t2 on t1.i = t2.i and t1.id <> t2.id;
select t1.id from t t1 where t1.i not in (select i from t where id < 20);
select t1.id from t t1 where t1.i not in (select i from t where i is not null and id < 9);
select t1.id from t t1 where t1.i not in (select i from t where id < 0);
select t1.id from t t1 where (t1.i, t1.s) not in (select i, s from t where id % 10 = 1);
select id, exists(select 1 from t t2 where t2.i = t.i and t2.b) e from t;
select id, i in (select i from t where id < 9) e from t;
select t1.id, (select max(id) from t t2 where t2.i = t1.i) x from t t1;
select t1.id, (select count(*) from t t2 where t2.i = t1.i) y from t t1;

select i from t intersect select i from t where b;
select i, s from t except select i, s from t where b;
select i from t union all select cast(k as int) from pt;
select i, i, i + 1 from t union all select 1, id, 2 from pt;
select i from t union select cast(k as int) from pt;
select k, count(*) from (select i k from t union all select cast(k as int) from pt) group by k;

select id, (select max(m) from t) a, (select min(w) from t) b from t where m > (select avg(m) from t);
select id, (select sum(k) from pt where k > 100) a from t;
select id, (select k from pt order by id limit 1) a from t;
select t1.id from t t1 join t t2 on t1.id = t2.id and t1.i < (select max(k) from pt);
select id from t where i > (select distinct k from pt where k = 3);
select id, (select k from pt where id = 1001) a from t where i = (select max(k) from pt where id = 3);
select 1 a, 'x' b;
select (select max(i) from t) a, (select count(*) from pt) b, 7 c;
select k, s, sum(n), count(*) c, grouping_id() g from (select i k, s, sum(id) n from t group by i, s
  union all select k, string(p), max(id) from pt group by k, p) group by rollup(k, s);
with a as (select i k, sum(m) s from t group by 1) select * from a where s > (select avg(s) from a);

select p, q, sum(k) from pt where q = date'2021-01-01' or q is null group by p, q;
select id, p, q from pt where p = '1';
select cast(i as bigint) a, try_cast(s as int) b, cast(m as double) c, cast(i as string) d,
  cast(day as timestamp) e from t;
select case when i > 3 then 'x' when i < 0 then s else 'z' end a, if(b, i, 0) c, coalesce(i, 7) d,
  nullif(i, 3) e, nvl2(i, s, 'q') f from t;
select id from t where i in (1, 2, 3) or s in ('abc', '') or id in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13);
select id from t where i in (1, id, null);
select id from t where day in (date'2020-02-01', date'2020-02-02') and m between 10 and 30.5;
select id % 3 a, id div 7 b, -i c, abs(i) d, m * w e, m / 3 f, m % 2 g, d * 2 h, i / 2 i2 from t where id > 0;
select try_add(i, 2147483647) a, i + 1 b, try_divide(i, 0) c, try_subtract(i, 1) d from t;

select length(s) a, upper(s) b, lower(s) b2, substring(s,2,2) c, concat(s,'x') d, trim(s) e, s || i f,
  replace(s,'a','b') g, lpad(s,5,'*') h, rpad(s, 4) i, instr(s,'b') j, reverse(s) k, repeat(s,2) l,
  left(s,2) m, right(s,1) n, initcap(s) o, ascii(s) p, substring_index(s,'b',1) r,
  translate(s,'ab','xy') t, concat_ws('-',s,'k') u, ltrim(s) v, char_length(s) w from t;
select s rlike '^a.c' a, regexp_replace(s,'[a-c]','z') b, regexp_extract(s,'(a)(b)',1) c,
  startswith(s,'a') e, contains(s,'b') f, md5(s) g, sha2(s,256) h, crc32(s) i, hash(i, s) j,
  xxhash64(id) k from t;
select round(m,1) a, round(d,2) b, floor(d) c, ceil(m) d2, sqrt(abs(i)) e, power(i,2) f, greatest(i,3)
  g, least(m,2) h, sign(m) i2, exp(i) j, ln(id+1) k, log10(id+1) l, bround(m,1) m2, i & 3 n, i | 3 o, i
  ^ 1 p, ~i q, shiftleft(i,2) r, pmod(i,3) s2, hex(id) t2 from t where not isnan(d) or d is null;
select named_struct('x',i).x b, array(i,2)[0] c, size(array(i)) e, array_contains(array(i,2), 2) f,
  element_at(array(i,5), 2) h, cardinality(array(1)) k, get(array(i), 3) l, size(split(s,'b')) m from t;
select struct(i,s) a, array(i, 2) b, struct(i, s).s c from t;
select size(collect_set(i)) a from t;
select from_unixtime(id) b, timestamp_seconds(id) c, timestamp_millis(id) d, unix_micros(cast(ts as
  timestamp)) f, day + interval 1 month g, day - interval 2 years h, ts + interval 3 months k, cast(ts
  as timestamp) - interval 1 month l, day - date'2020-01-01' m, ts - timestamp_ntz'2020-01-01 00:00:00'
  n from t;
select id from t where s like 'a%' or s like '_b_' or s like '%b%' or s not like 's%_';
select date_add(day, 3) a, year(day) c, month(day) d, dayofmonth(day) e, quarter(day) f, weekofyear(day) g,
  dayofweek(day) h, last_day(day) i, datediff(day, date'2020-02-01') j, trunc(day, 'MM') k from t;
select nanvl(d, 0) a, isnan(d) b, coalesce(i, id, 0) c, ifnull(s, 'n') d2, d <=> null e, nullif(s, '') g from t;
select count(*) from t where day between date'2020-02-01' and date'2020-02-20' and substring(s, 1, 1) in ('a', 's');

select lag(i,2) over (partition by b order by id) a, lead(i, 1, 7) ignore nulls over (partition by b
  order by id) x, nth_value(i,2) over (partition by b order by id) n, ntile(3) over (partition by b
  order by id) nt from t;
select sum(i) over (partition by b order by id rows between 2 preceding and 1 following) a, sum(i) over
  (partition by b order by day range between 2 preceding and current row) x, first_value(i) over
  (partition by b order by id) f, percent_rank() over (partition by b order by id) pr, sum(m) over
  (partition by b order by id range between 1.5 preceding and 2 following) z, avg(m) over (partition by
  i) am from t;
select * from (select id, row_number() over (partition by i order by id desc) r from t) where r<=2;
select id, sum(m) over (partition by i) x, rank() over (order by i) y, count(*) over () c from t;
select id, sum(m) filter (where b) over (partition by i) x, count(*) filter (where i > 2) over (order by id) c,
  max(s) filter (where m > 1) over (order by id, s, m rows between 2 preceding and current row) y from t;
select id, x from t lateral view outer explode(array(i, i+1)) as x;
select id, x from t lateral view explode(array(s)) as x;
select i from t intersect all select i from t where b;
select i from t except all select i from t where b;
select i, s, sum(m), grouping_id() from t group by cube(i,s);
select count(distinct i) a, sum(distinct m) b, count(*) c from t;
select stack(2, 1, i, 2, i+1) as (a, b2) from t;
select s, x from t lateral view explode(split(s, 'b')) as x;
select id, p, x from t lateral view posexplode(array(i, i+1)) as p, x;
select i, count(distinct s) a, count(distinct b) c, sum(m) d, max(w) from t group by i;
select id, sum(m) over (order by id desc range between 3 preceding and 1 following) x, avg(d) over
  (partition by b order by id rows 2 preceding) y from t;
select id, lag(i) over (partition by b order by id) - i x, last_value(i) ignore nulls over (partition by
  b order by id) y, sum(i) over (partition by b order by id) / sum(i) over (partition by b) z from t;
select * from (select id, rank() over (partition by s order by i nulls last, id) r from t) where r <= 3;
select i, sum(sum(m)) over (order by i) from t group by i;
select i, s, grouping(i) a, grouping_id(i, s) b, sum(m) from t group by grouping sets ((i), (s), (i, s),
  ());
select id, a, b2 from t lateral view inline(array(struct(i, s), struct(i, s))) as a, b2;
"""

ORDERED = """
select id from t order by id limit 5 offset 3;
select id, s, d from t order by d desc nulls first, s nulls last, id limit 30;
select id from t where b order by day desc, id desc;
select id from t order by id desc offset 190;
select i + 1 k, sum(m) s from t group by i order by s desc nulls last, k;
"""


def _queries(text: str) -> list[str]:
    return [query.strip() for query in text.split(";") if query.strip()]


@pytest.mark.parametrize("query", _queries(ZOO))
def test_same_rows(spark: Any, jvm: Jvm, zoo: None, query: str) -> None:
    taken = take(spark, jvm, query)
    if SPARK_BEFORE_4_3 and "corr(" in query:
        with pytest.raises(Unsupported, match="Corr stays with it"):
            taken.whole()
        return
    assert_same_rows(taken.run(taken.whole()), taken.frame.toArrow())


@pytest.mark.parametrize("query", _queries(ORDERED))
def test_same_rows_in_the_same_order(spark: Any, jvm: Jvm, zoo: None, query: str) -> None:
    taken = take(spark, jvm, query)
    assert_same_rows(taken.run(taken.whole()), taken.frame.toArrow(), ordered=True)


def test_projections_of_expand_that_the_json_loses_are_fetched(spark: Any, jvm: Jvm, zoo: None) -> None:
    """Spark pushes projections into an Expand over a UNION as Scala vectors, which its JSON leaves out."""
    taken = take(
        spark,
        jvm,
        """select k, s, sum(x) from (select i k, s, sum(m) as x from t group by i, s
           union all select k, string(p), null from pt group by k, p) group by rollup(k, s)""",
    )
    expands = [node for node in taken.root.walk() if node.cls == "Expand"]
    assert [node.fields["projections"] for node in expands] == [None]
    fetched = taken.facts.projections(expands[0])
    assert [[item.cls for item in row][-1] for row in fetched] == ["Literal"] * 3
    assert_same_rows(taken.run(taken.whole()), taken.frame.toArrow())


def test_two_rows_of_a_scalar_subquery_are_an_error(spark: Any, jvm: Jvm, zoo: None) -> None:
    taken = take(spark, jvm, "select id from t where i > (select k from pt where id < 3)")
    with pytest.raises(ExecutionError, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
        taken.run(taken.whole())
    with pytest.raises(Exception, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
        taken.frame.toArrow()


def test_a_kept_build_side_is_not_taken_for_one_that_matches_nulls(spark: Any, jvm: Jvm, zoo: None) -> None:
    """The same build plan and keys: with ``=`` its NULLs match nothing, with ``<=>`` they match NULLs."""
    plain = take(spark, jvm, "select t.id from t left semi join pt on t.i = pt.k")
    safe = take(spark, jvm, "select t.id from t left semi join pt on t.i <=> pt.k")
    for taken in (plain, safe, plain):
        assert_same_rows(taken.run(taken.whole()), taken.frame.toArrow())


# Expressions with a mode of their own, in one query: what each does with the same bad value.
def test_modes_of_one_query_are_kept_apart(spark: Any, jvm: Jvm, zoo: None) -> None:
    taken = take(
        spark,
        jvm,
        """select try_add(i, 2147483645) a, i + 1 b, try_cast(s as int) c, cast(i as bigint) + 1 d,
           try_multiply(id, 9223372036854775807) e, sum(try_add(i, 2147483645)) over_all
           from t group by i, s, id""",
    )
    ours = taken.run(taken.whole())
    assert ours.column("a").null_count > ours.column("b").null_count
    assert_same_rows(ours, taken.frame.toArrow())


def test_an_overflow_is_an_error_where_spark_has_one(spark: Any, jvm: Jvm, zoo: None) -> None:
    taken = take(spark, jvm, "select i + 2147483647 a from t")
    with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
        taken.run(taken.whole())
    with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
        taken.frame.toArrow()


def test_a_plan_made_without_ansi_keeps_its_arithmetic(spark: Any, jvm: Jvm, zoo: None) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        frame = spark.sql(
            "select i + 2147483647 a, i / 0 b, id % 0 c, cast(w as int) d, sum(i) e from t group by all"
        )
        frame.createOrReplaceTempView("old")
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")
    try:
        taken = take(spark, jvm, "select a, b, c, e, try_add(e, 1) f, e + 1 g from old")
        assert_same_rows(
            taken.run(taken.whole()), frame.selectExpr("a", "b", "c", "e", "e + 1 f", "e + 1 g").toArrow()
        )
    except Unsupported as declined:
        pytest.fail(declined.reason)
    finally:
        spark.catalog.dropTempView("old")


@pytest.mark.parametrize(
    "options",
    [{}, {"header": "true"}, {"header": "true", "inferSchema": "true"}, {"sep": ",", "nullValue": "abc"}],
    ids=str,
)
def test_csv_files(spark: Any, jvm: Jvm, zoo_dir: Path, tmp_path: Path, options: dict[str, str]) -> None:
    columns = ["id", "i", "d", "m", "s", "day", "b", "id % 3 as k"]
    frame = spark.read.parquet(str(zoo_dir / "t")).selectExpr(*columns)
    frame.repartition(2).write.partitionBy("k").option("header", "header" in options).csv(str(tmp_path / "c"))
    frame = spark.read.options(**options).csv(str(tmp_path / "c"))
    for query in (frame, frame.groupBy(frame.columns[1], "k").count()):
        taken = take(spark, jvm, query)
        imported = taken.whole()
        assert not imported.inputs
        assert_same_rows(taken.run(imported), query.toArrow())


def test_csv_options_that_the_engine_does_not_follow(spark: Any, jvm: Jvm, tmp_path: Path) -> None:
    spark.range(5).write.csv(str(tmp_path / "c"))
    taken = take(spark, jvm, spark.read.option("lineSep", "|").csv(str(tmp_path / "c")))
    with pytest.raises(Unsupported, match="linesep"):
        taken.whole()

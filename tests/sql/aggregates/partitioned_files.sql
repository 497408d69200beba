-- Aggregates over 200 rows with NULL, NaN and -0.0, and over a partitioned table.
-- Tables: many_rows, partitioned_rows

query
select i, count(*), sum(m), avg(m), min(s), max(day) from t group by i

query
select d, count(*) c from t group by d

query
select sum(d), avg(d), sum(i), avg(i), sum(w), avg(w) from t

query
select sum(distinct i), count(distinct s), count(distinct s, i) from t

query
select i, sum(m) filter (where b) x, count(*) filter (where s is not null) y from t group by i

query
select i + 1 k, sum(m) * 2 + count(*) s from t group by i + 1 having count(*) > 3 order by k

query
select 1 from t group by i

query
select distinct i, b from t

query
select count(*) from t

query
select max(i) from t where id > 1000

query
select sum(case when b then m else 0 end) x, count(if(i > 0, 1, null)) y from t

query
select sum(cast(m as decimal(5,2))), avg(cast(m as decimal(5,2))) from t where m < 100

query
select i, sum(cast(m as decimal(5,2))) x from t where m < 100 group by i

query
select count(distinct i) a, sum(distinct m) b, count(*) c from t

query
select b, first(x), last(x), any_value(x) from (select b, max(i) x from t group by b) group by b

-- MinSparkVersion: 4.3
query tolerance=1e-9
select stddev(m), stddev_pop(d), var_pop(i), variance(m), corr(i, id), covar_samp(i, id), skewness(i), kurtosis(m)
  from t where not isnan(d)

query
select percentile(m, 0.5), median(i), percentile(id, 0.25), max_by(s, id), min_by(i, id) from t

query context_declines(unknown function try_sum)
select try_sum(i), try_avg(m), sum(id), bit_and(i), bit_xor(i), bool_and(b), every(i > 2), count_if(i > 2) from t

query
select p, q, sum(k) from pt where q = date'2021-01-01' or q is null group by p, q

query
select count(*) from t where day between date'2020-02-01' and date'2020-02-20' and substring(s, 1, 1) in ('a', 's')

query
select i, s, sum(m), grouping_id() from t group by cube(i,s)

query
select count(distinct i) a, sum(distinct m) b, count(*) c from t

query
select i, count(distinct s) a, count(distinct b) c, sum(m) d, max(w) from t group by i

query
select i, s, grouping(i) a, grouping_id(i, s) b, sum(m) from t group by grouping sets ((i), (s), (i, s), ())

query
select i + 1 k, sum(m) s from t group by i order by s desc nulls last, k

-- Set operations over 200 rows with NULL, NaN and -0.0, and over a partitioned table.

statement
CREATE TEMP VIEW t AS
select id, cast(if(id % 7 = 0, null, id % 13 - 5) as int) i,
  case when id % 11 = 0 then null when id % 11 = 1 then double('NaN') when id % 11 = 2 then -0.0D
    when id % 11 = 3 then 0.0D else id / 3.0D end d,
  cast(if(id % 5 = 0, null, id * 1.25) as decimal(7,2)) m,
  cast(id * 1000000007.1234 as decimal(20,4)) w,
  case when id % 6 = 0 then null when id % 6 = 1 then '' when id % 6 = 2 then 'abc'
    when id % 6 = 3 then 'Äö%_x' else concat('s', id % 9) end s,
  date_add(date'2020-01-30', cast(id % 50 as int)) day,
  timestamp_ntz'2020-01-01 00:00:00' + make_dt_interval(cast(id as int), 5, cast(id % 60 as int), 1.5) ts,
  id % 3 = 0 b from range(200)

statement partitioned_by(p, q)
CREATE TEMP VIEW pt AS
select id, if(id % 9 = 8, null, cast(id % 4 as int)) k, cast(id % 3 as string) p,
  if(id % 5 = 0, null, date_add(date'2021-01-01', cast(id % 2 as int))) q from range(60)

query
select i from t intersect select i from t where b

query
select i, s from t except select i, s from t where b

query
select i from t union all select cast(k as int) from pt

query
select i, i, i + 1 from t union all select 1, id, 2 from pt

query
select i from t union select cast(k as int) from pt

query
select k, count(*) from (select i k from t union all select cast(k as int) from pt) group by k

query
select k, s, sum(n), count(*) c, grouping_id() g from (select i k, s, sum(id) n from t group by i, s union all select
  k, string(p), max(id) from pt group by k, p) group by rollup(k, s)

query
select i from t intersect all select i from t where b

query
select i from t except all select i from t where b

-- Subqueries over 200 rows with NULL, NaN and -0.0, and over a partitioned table.

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
select i, sum(m) + (select max(k) from pt) x from t group by i

query
select sum(m + (select max(k) from pt)) x from t

query
select t1.id from t t1 where t1.i not in (select i from t where id < 20)

query
select t1.id from t t1 where t1.i not in (select i from t where i is not null and id < 9)

query
select t1.id from t t1 where t1.i not in (select i from t where id < 0)

query
select t1.id from t t1 where (t1.i, t1.s) not in (select i, s from t where id % 10 = 1)

query
select id, exists(select 1 from t t2 where t2.i = t.i and t2.b) e from t

query
select id, i in (select i from t where id < 9) e from t

query
select t1.id, (select max(id) from t t2 where t2.i = t1.i) x from t t1

query
select t1.id, (select count(*) from t t2 where t2.i = t1.i) y from t t1

query
select id, (select max(m) from t) a, (select min(w) from t) b from t where m > (select avg(m) from t)

query
select id, (select sum(k) from pt where k > 100) a from t

query
select id, (select k from pt order by id limit 1) a from t

query
select t1.id from t t1 join t t2 on t1.id = t2.id and t1.i < (select max(k) from pt)

query
select id from t where i > (select distinct k from pt where k = 3)

query
select id, (select k from pt where id = 1001) a from t where i = (select max(k) from pt where id = 3)

query
select (select max(i) from t) a, (select count(*) from pt) b, 7 c

query
with a as (select i k, sum(m) s from t group by 1) select * from a where s > (select avg(s) from a)

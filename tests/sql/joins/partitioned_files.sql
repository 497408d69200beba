-- Joins over 200 rows with NULL, NaN and -0.0, and over a partitioned table.

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
select t1.id, t2.id id2 from t t1 join t t2 on t1.i = t2.i and t1.id < t2.id

query
select t1.id, t2.s from t t1 left join t t2 on t1.s = t2.s and t1.m > t2.m

query
select t1.id, t2.s from t t1 right join t t2 on t1.s = t2.s and t1.m > t2.m

query
select t1.id, t2.id from t t1 full join (select * from t where i > 2) t2 on t1.id = t2.id and t1.b

query
select t1.id, t2.id from t t1 join t t2 on t1.i <=> t2.i where t1.id < 20 and t2.id < 20

query
select t1.id, t2.id from t t1 join t t2 on t1.d = t2.d

query
select t1.k, t2.p, count(*) from pt t1, pt t2 where t1.id = t2.id group by t1.k, t2.p

query
select count(*) from t t1 cross join pt where t1.i > pt.k

query
select t1.id from t t1 left semi join t t2 on t1.i = t2.i and t1.id <> t2.id

query
select t1.id from t t1 left anti join t t2 on t1.i = t2.i and t1.id <> t2.id

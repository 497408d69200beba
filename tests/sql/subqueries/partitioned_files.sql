-- Subqueries over 200 rows with NULL, NaN and -0.0, and over a partitioned table.
-- Tables: many_rows, partitioned_rows

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

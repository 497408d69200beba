-- Joins over 200 rows with NULL, NaN and -0.0, and over a partitioned table.
-- Tables: many_rows, partitioned_rows

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

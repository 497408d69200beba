-- Joins of every kind, with USING, NATURAL and ON.
-- Tables: typed_rows, pairs, nested_rows, timestamps

query
select a.id, b.tag from t a join u b on a.id = b.id

query
select * from t join u using (id)

query
select id, t.id, u.id from t left join u using (id)

query
select * from t natural join u

query
select * from t full join u using (id)

query
select * from t right join u using (id)

query
select t.id, u.tag from t left join u on t.id = u.id and u.v > 100

query
select t.id, u.tag from t full outer join u on t.id = u.id

query
select * from t left semi join u on t.id = u.id

query
select * from t left anti join u on t.id = u.id

query
select count(*) from t cross join u

query
select t.id, u.id from t, u where t.id = u.id and u.v > 100

query
select t.id from t join u on t.id < u.id

query
select t.* from t join u on t.id = u.id

query
select u.*, t.id from t join u on t.id = u.id

query
select a.id, b.id from t a, t b where a.id = b.id + 1

query
select t1.id from t t1 join t t2 on t1.id = t2.id join t t3 on t2.id = t3.id

query expect_error(AMBIGUOUS_REFERENCE)
select t.id, u.id from t join u on t.id = u.id where id = 1

query expect_error(UNRESOLVED_USING_COLUMN_FOR_JOIN)
select * from t join u using (nosuch)

query
select * from (t join u on t.id = u.id)

query
select t.*, u.* from t left join u on t.id = u.id order by t.id, u.tag

query
select d - interval 2 day, interval 1 day + d, 1 + d, at - timestamp '2020-01-01 00:00:00', d from t join ts using
  (id)

query
select cast(id as string) || 'x', int(id) + 1, cast(cast(id as bigint) as string), st.x + 1, cast(st.x as string) from
  t join n using (id)

query
select a.id from t a join t b using (id) join t c using (id)

query
select * from (select name, id from t) a left semi join u using (id)

query
select * from (select name, id from t) a left anti join u using (id)

query
select d + interval '1' month, d - interval '1' year, interval '1-2' year to month + d, at + interval '3' month, at -
  interval 2 years from t join ts using (id)

query
select d + (interval '1' year + interval '2' month) as a, d - 2 * interval '1' month as b, d + id * interval '1' month
  as c, at - interval '1' month * id as e, d + (- interval '1' year) as f from t join ts using (id)

query
select d + make_ym_interval(1, id) as a, at - make_ym_interval(id) as b from t join ts using (id)

query
select d + (id + 0.5D) * interval '1' month from t join ts using (id)

query
select a.id from n a join n b on a.st = b.st and a.arr = b.arr

query
select a.*, b.* from t a join u b using (id)

query
select b.*, a.id from t a left join u b using (id)

-- MinSparkVersion: 4.0
query
select b.*, a.* except (big) from t a right join u b using (id)

query
select a.*, b.* from t a full join u b using (id)

query
select b.*, a.id, c.* from t a natural join u b right join u c using (v)

query
select name, count(distinct *) from t a join u b using (id) group by name

-- MinSparkVersion: 4.0
query expect_error(AMBIGUOUS_REFERENCE)
select * except (id) from t join u on t.id = u.id

query expect_error(JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE)
select * from t join u on null

query expect_error(JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE)
select * from t join u on t.id

query expect_error(UNSUPPORTED_EXPR_FOR_OPERATOR)
select * from t join u on max(t.id) = u.id

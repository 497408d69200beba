-- What can be NULL inside of nested values.

statement
CREATE TEMP VIEW t AS
SELECT * FROM VALUES
  (1, 'a', 10L, CAST(1.5 AS DECIMAL(7,2)), DATE '2020-01-31', 1.5D, true),
  (2, 'b', 20L, CAST(2.25 AS DECIMAL(7,2)), DATE '2020-02-29', CAST('NaN' AS DOUBLE), false),
  (3, NULL, 30L, NULL, DATE '2021-03-15', -0.0D, NULL),
  (4, 'a', NULL, CAST(4.75 AS DECIMAL(7,2)), NULL, 0.0D, true),
  (NULL, 'b', 50L, CAST(-5.50 AS DECIMAL(7,2)), DATE '1999-12-31', NULL, false)
  AS t(id, name, big, dec, d, dbl, flag)

query
select array(1), array(id), array(1, null), array(array(1), array(id)), array(named_struct('a', 1)) from t

query
select named_struct('a', 1), named_struct('a', id, 'b', 'x'), struct(id, 1), named_struct('a', array(1)) from t

query
select if(flag, array(1), array(id)), coalesce(array(id), array(1)), case when flag then array(1) end from t

query
select collect_list(id), collect_set(id), collect_list(struct(id)), max(array(1)), first(struct(id)) from t

query
select case when flag then array(1) else array(2L) end, split(name, ','), cast(array(1) as array<bigint>) from t

query
select concat(array(1), array(2, 3)), array(name) || array('x'), reverse(array(id, 1)) from t

query
select array(struct(id, name)).name as a, array(struct(id, name), null).id as b from t

query
select array_union(array(1), array(id)), array_except(array(1), array(id)), sort_array(array(1)) from t

query
select explode(array(1, 2)) from t

query
select explode(array(id)), 1 from t

query
select inline(array(struct(1 as a, id as b))) from t

query
select array(1) a, named_struct('a', 1) b union all select array(id), named_struct('a', id) from t

query
select a, count(*) from (select array(1) a from t union all select array(id) from t) group by a

query
select * from values (array(1), named_struct('a', 1)), (array(2), named_struct('a', 2))

query
select x.a, y.b from (select array(id) a from t) x left join (select array(1) b, named_struct('q', 1) s) y on x.a =
  y.b

query
select max(x) from (select struct(1 as id) x union all select struct(id) from t)

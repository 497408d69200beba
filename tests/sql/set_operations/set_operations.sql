-- UNION, INTERSECT and EXCEPT, and the types they find.

statement
CREATE TEMP VIEW t AS
SELECT * FROM VALUES
  (1, 'a', 10L, CAST(1.5 AS DECIMAL(7,2)), DATE '2020-01-31', 1.5D, true),
  (2, 'b', 20L, CAST(2.25 AS DECIMAL(7,2)), DATE '2020-02-29', CAST('NaN' AS DOUBLE), false),
  (3, NULL, 30L, NULL, DATE '2021-03-15', -0.0D, NULL),
  (4, 'a', NULL, CAST(4.75 AS DECIMAL(7,2)), NULL, 0.0D, true),
  (NULL, 'b', 50L, CAST(-5.50 AS DECIMAL(7,2)), DATE '1999-12-31', NULL, false)
  AS t(id, name, big, dec, d, dbl, flag)

statement
CREATE TEMP VIEW u AS
SELECT * FROM VALUES (1, 'x', 100), (1, 'y', 200), (2, 'z', 300), (NULL, 'n', 400), (7, 'q', NULL)
  AS u(id, tag, v)

statement
CREATE TEMP VIEW n AS
SELECT id, array(id, id + 1) AS arr, named_struct('x', id, 'y', name) AS st, map('k', id) AS m
  FROM t WHERE id IS NOT NULL

query
select id from t union select id from u

query
select id, name from t union all select id, tag from u order by 1, 2

query
select id from t intersect select id from u

query
select id from t except select id from u

query
select id from t except all select id from u

query
select id from t intersect all select id from u

query
select id from t union all select v from u

query
select id from t union all select dec from t

query expect_error(NUM_COLUMNS_MISMATCH)
select id from t union select id, name from t

query
select x from (select 1 x union all select 2) order by x

query
select arr from n union select array(id * 1L) from t

query
select named_struct('a', 1) union all select named_struct('a', id) from t

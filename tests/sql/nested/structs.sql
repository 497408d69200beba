-- Structs: exploded, repeated names, and arrays of them that are empty.

statement
CREATE TEMP VIEW t AS
SELECT * FROM VALUES
  (1, 10Y, 1.5D, 'a', DATE'2020-01-01', TIMESTAMP'2021-03-28 01:30:00', 12.34BD, true, ARRAY(1, 2, NULL), MAP('k', 1),
  NAMED_STRUCT('x', 1, 'y', 'p')),
  (2, 20Y, DOUBLE('NaN'), 'B', DATE'1999-12-31', TIMESTAMP'2021-10-31 01:30:00', -0.01BD, false, ARRAY(),
  MAP('k', 2, 'j', 3), NAMED_STRUCT('x', 2, 'y', 'q')),
  (3, NULL, -0.0D, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (3, 30Y, 0.0D, 'ü', DATE'1601-01-01', TIMESTAMP'1960-01-01 00:00:00', 99.99BD, true, ARRAY(3), MAP(),
  NAMED_STRUCT('x', CAST(NULL AS INT), 'y', CAST(NULL AS STRING))),
  (NULL, 20Y, DOUBLE('infinity'), 'a', DATE'2020-02-29', TIMESTAMP'2020-02-29 12:00:00', 0.00BD, false, ARRAY(NULL),
  MAP('z', NULL), NAMED_STRUCT('x', 5, 'y', 'p'))
  AS t(k, b, f, s, d, ts, m, o, a, mp, st)

statement
CREATE TEMP VIEW u AS
SELECT id, CAST(id % 7 AS INT) k, CAST(id % 13 AS STRING) s, CAST(id / 3 AS DECIMAL(10, 2)) m,
  IF(id % 5 = 0, NULL, id % 11) v FROM RANGE(200)

-- lateral views
query
SELECT k, x, kk, vv FROM t LATERAL VIEW OUTER explode(a) AS x LATERAL VIEW OUTER explode(mp) AS kk, vv

-- exploded structs
query
SELECT e.x, count(*) FROM (SELECT explode(array(st, st)) e FROM t) GROUP BY 1

-- inlined structs
query
SELECT k, inline_outer(array(st)) FROM t

-- nested columns
query
SELECT a, mp, st, st.x, mp['k'], a[0] FROM t WHERE k = 1

-- empty arrays of structs
query context_declines(CAST from void to struct<x:int,y:string> is not supported.)
SELECT k, IF(k = 1, array(st), array()) a, coalesce(IF(k = 1, array(array(st)), NULL), array(array())) b, (SELECT
  collect_list(struct(id)) FROM u b WHERE b.id = a.k) c, array(NULL, st)[0].x d FROM t a

-- a struct that repeats a name
query
SELECT k, count(*) FROM u WHERE named_struct('a', k, 'a', v) > named_struct('a', 2, 'a', 3L) GROUP BY k

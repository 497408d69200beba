-- Joins and subqueries over rows of odd values, and over no rows.

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

statement
CREATE TEMP VIEW e AS
SELECT * FROM t WHERE false

-- floats not in a list
query
SELECT k FROM t WHERE f NOT IN (0.0D, 7.0D)

-- floats joined
query
SELECT a.k, b.k, a.f FROM t a JOIN t b ON a.f = b.f

-- nothing to join
query
SELECT * FROM e FULL JOIN (SELECT k kk FROM u WHERE id < 3) ON k = kk

-- a correlated count
query
SELECT k, (SELECT count(*) FROM u b WHERE b.id = a.k + 190) c FROM t a

-- exists in select
query
SELECT k, EXISTS (SELECT 1 FROM u b WHERE b.k = a.k) e FROM t a

-- not in with NULLs
query
SELECT k FROM t WHERE k NOT IN (SELECT v FROM u)

-- a CTE twice
query
WITH c AS (SELECT k, sum(v) sv FROM u GROUP BY k) SELECT a.k, b.sv FROM c a JOIN c b ON a.k = b.k + 1

-- hints
query
SELECT /*+ merge(b) */ count(*) FROM u a JOIN t b ON a.k = b.k

-- a range joined
query
SELECT r.id, count(*) FROM RANGE(10) r JOIN u ON r.id = u.k GROUP BY 1

-- rows joined
query
SELECT b, sum(v) FROM VALUES (1, 'a'), (2, 'b') x(a, b) JOIN u ON a = k GROUP BY b

-- fields of a subquery's struct
query
SELECT k, (SELECT max(struct(k, s)) FROM u).s a, (SELECT max(struct(k, s)) FROM u).k b, (SELECT max(struct(k, s)) FROM
  u) c FROM t

-- a subquery's struct and a field of it
query
SELECT (SELECT named_struct('a', id, 'b', s) FROM u WHERE id = 5) x, (SELECT named_struct('a', id, 'b', s) FROM u
  WHERE id = 5).b y, (SELECT named_struct('a', id, 'b', s) FROM u WHERE id < 0) z FROM t

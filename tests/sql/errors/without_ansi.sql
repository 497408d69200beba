-- Without ANSI, what would be an error is NULL or wraps around.
-- Config: spark.sql.ansi.enabled=false

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

-- casts of garbage
query
SELECT CAST(s AS INT), CAST(s AS DATE), CAST(s AS DECIMAL(3, 1)), CAST(f AS INT), CAST(k * 100000 AS TINYINT), k / 0,
  k % 0, k + 2147483647 FROM t

-- decimals
query
SELECT CAST(m * 1000 AS DECIMAL(4, 2)), sum(m * 1e36BD) FROM t GROUP BY m

-- sums
query
SELECT sum(id * 9223372036854775807) FROM u

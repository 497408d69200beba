-- Overflow, division by zero and bad casts among rows of odd values.

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

-- overflow
query expect_error(ARITHMETIC_OVERFLOW)
SELECT k + 2147483647 FROM t

-- division by zero
query expect_error(DIVIDE_BY_ZERO)
SELECT k / (k - k) FROM t WHERE k IS NOT NULL

-- a bad cast
query expect_error(CAST_INVALID_INPUT)
SELECT CAST(s AS INT) FROM t

-- decimals past 38 digits
query expect_error(NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION)
SELECT sum(m * 1e36BD) FROM t

-- short circuits
query
SELECT count(*) FROM u WHERE (k = 0 OR 10 / k > 1) AND CASE WHEN k = 0 THEN 1 ELSE 7 / k END > 0

-- bad casts beside NULL
query expect_error(CAST_INVALID_INPUT)
SELECT i / n, i div n, i % n, pmod(i, n), try_divide(i, n), n + i, substring('abc', n, i), replace(s, nullif(s, s), r)
  FROM (SELECT s, nullif(length(s), 1) n, CAST(s AS INT) i, CAST(CAST(s AS INT) AS STRING) r FROM t)

-- a bad cast beside the NULL of a dividend
query expect_error(CAST_INVALID_INPUT)
SELECT nullif(length(s), 1) / CAST(s AS INT) FROM t

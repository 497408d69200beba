-- Differences of times, and arithmetic of intervals.

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

-- dates
query
SELECT d + INTERVAL 1 MONTH, last_day(d), datediff(d, DATE'2000-01-01'), trunc(d, 'MM') FROM t

-- differences of times
query
SELECT ts - TIMESTAMP'2020-01-01' > INTERVAL 1 DAY, max(ts) - min(ts) FROM t GROUP BY ts

-- intervals
query context_declines(cannot multiply interval day to second and int)
SELECT k, i * 2 a, i * 1.5D b, i / 3 c, -i d, extract(DAY FROM i) e, extract(HOUR FROM i) f, extract(MINUTE FROM i) g,
  extract(SECOND FROM i) h, i > INTERVAL 1 DAY x, ts - i y FROM (SELECT k, ts, ts - TIMESTAMP'2020-01-01 00:00:00.5' i
  FROM t)

-- intervals added up
query
SELECT k, sum(i), avg(i), max(i) FROM (SELECT k, ts - TIMESTAMP'2020-01-01' i FROM t) GROUP BY k

-- an interval over nothing
query expect_error(INTERVAL_DIVIDED_BY_ZERO) context_declines(cannot divide interval day to second by int)
SELECT (ts - TIMESTAMP'2020-01-01') / (k - 1) FROM t

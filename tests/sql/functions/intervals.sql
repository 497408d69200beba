-- Differences of times, and arithmetic of intervals.
-- Tables: odd_rows

-- dates
query
SELECT d + INTERVAL 1 MONTH, last_day(d), datediff(d, DATE'2000-01-01'), trunc(d, 'MM') FROM t

-- differences of times
query
SELECT ts - TIMESTAMP'2020-01-01' > INTERVAL 1 DAY, max(ts) - min(ts) FROM t GROUP BY ts

-- intervals
query
SELECT k, i * 2 a, i * 1.5D b, i / 3 c, -i d, extract(DAY FROM i) e, extract(HOUR FROM i) f, extract(MINUTE FROM i) g,
  extract(SECOND FROM i) h, i > INTERVAL 1 DAY x, ts - i y, 2 * i z FROM (SELECT k, ts, ts - TIMESTAMP'2020-01-01 00:00:00.5' i
  FROM t)

-- intervals added up
query
SELECT k, sum(i), avg(i), max(i) FROM (SELECT k, ts - TIMESTAMP'2020-01-01' i FROM t) GROUP BY k

-- an interval over nothing
query expect_error(INTERVAL_DIVIDED_BY_ZERO)
SELECT (ts - TIMESTAMP'2020-01-01') / (k - 1) FROM t

-- years and months of columns, where they are added
query
SELECT k, d + make_ym_interval(k, 3) AS a, ts - make_ym_interval(k) AS b FROM t

query
SELECT k, d + INTERVAL 2 MONTH * k AS a, ts + INTERVAL '1-1' YEAR TO MONTH * k AS b, d - INTERVAL 1 YEAR * k AS c FROM t

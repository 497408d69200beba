-- Structs and arrays as keys and in comparisons, and the time windows that Spark makes structs of.
-- Tables: structs

-- structs grouped
query
SELECT st, count(*), sum(k) FROM t GROUP BY st

-- arrays grouped
query
SELECT a, count(*) c FROM t GROUP BY a

-- floats in arrays grouped
query
SELECT fa, count(*) c FROM t GROUP BY fa

-- deep values grouped
query
SELECT d, count(*) FROM (SELECT named_struct('p', array(st), 'q', a) d FROM t) GROUP BY d

-- distinct
query
SELECT DISTINCT st, fa FROM t

-- counted distinct
query
SELECT k % 2, count(DISTINCT st), count(DISTINCT a, fa) FROM t GROUP BY 1

-- union
query
SELECT st, a FROM t UNION SELECT st, a FROM t

-- intersect
query
SELECT st, a FROM t INTERSECT SELECT st, a FROM t WHERE k > 2

-- except all
query
SELECT fa FROM t EXCEPT ALL SELECT fa FROM t WHERE k IN (1, 3)

-- joined by structs
query
SELECT x.k, y.k FROM t x JOIN t y ON x.st = y.st

-- joined by arrays
query
SELECT x.k, y.k, y.a FROM t x LEFT JOIN t y ON x.a = y.a AND x.k < y.k

-- sorted by structs
query
SELECT k, st FROM t ORDER BY st DESC, k

-- sorted by arrays
query
SELECT k, a, fa FROM t ORDER BY a, fa NULLS LAST, k

-- compared
query
SELECT x.k, y.k, x.st = y.st, x.st < y.st, x.a >= y.a, x.fa <=> y.fa, x.fa > y.fa, x.st <> y.st FROM t x CROSS JOIN t
  y

-- compared with constants
query
SELECT k, a = array(1, 2), a < array(1), st.f = 0 FROM t WHERE fa >= array(0D)

-- extremes
query
SELECT k % 3 g, max(st), min(st), max(a), min(fa), max_by(k, st), min_by(k, a) FROM t GROUP BY 1

-- latest of each
query
SELECT k % 3 g, max(struct(ts, k)).k FROM t GROUP BY 1

-- gathered
query
SELECT k % 2 g, size(collect_set(named_struct('s', st.s, 'a', a))) n FROM t GROUP BY 1

-- partitions
query
SELECT k, row_number() OVER (PARTITION BY st ORDER BY a, k) r, rank() OVER (ORDER BY st) q FROM t

-- largest over windows
query
SELECT k, max(st) OVER (ORDER BY k), min(a) OVER (ORDER BY k ROWS 2 PRECEDING) FROM t

-- casts of arrays
query
SELECT k, CAST(a AS ARRAY<BIGINT>) x, CAST(a AS ARRAY<STRING>) y, CAST(fa AS ARRAY<FLOAT>) z, CAST(array(a, NULL) AS
  ARRAY<ARRAY<DOUBLE>>) d, try_cast(a AS ARRAY<TINYINT>) t FROM t

-- casts of structs
query
SELECT k, CAST(st AS STRUCT<p: BIGINT, q: STRING, r: STRING>) x, CAST(array(st) AS ARRAY<STRUCT<a: STRING, b: FLOAT,
  c: BINARY>>) y, CAST(NULL AS STRUCT<a: INT>) z FROM t

-- casts that fail
query expect_error(CAST_OVERFLOW)
SELECT CAST(a AS ARRAY<TINYINT>) FROM t

-- casts behind NULL
query
SELECT k, CASE WHEN k < 9 THEN CAST(a AS ARRAY<TINYINT>) END x FROM t

-- unions of arrays
query
SELECT a FROM t UNION ALL SELECT array(k * 10000000000L) FROM t

-- time windows
query
SELECT window.start s, window.end e, sum(k), max(ts) FROM t GROUP BY window(ts, '10 minutes')

-- windows whole
query
SELECT window, count(*) FROM t GROUP BY window(ts, '1 hour', '1 hour', '7 minutes')

-- sliding windows
query
SELECT window, k % 2, sum(k) FROM t GROUP BY window(ts, '10 minutes', '4 minutes'), 2

-- window times
query context_declines(unknown function window_time)
SELECT window_time(w) t, s FROM (SELECT window w, sum(k) s FROM t GROUP BY window(ts, '5 minutes'))

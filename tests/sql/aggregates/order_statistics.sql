-- percentile, percentile_cont, percentile_disc, median and mode. Releases before 4.3 interpolate to other last digits.

statement
CREATE TEMP VIEW t AS
SELECT id, id % 3 AS k, id % 4 AS w, IF(id % 11 = 0, NULL, concat('s', id % 5)) AS s, id % 2 = 0 AS b,
  CAST(id * 1.5 AS DECIMAL(7, 2)) AS m, IF(id % 7 = 3, NULL, id / 4D) AS x,
  CASE WHEN id % 9 = 1 THEN DOUBLE('NaN') WHEN id % 9 = 2 THEN DOUBLE('infinity') ELSE id % 6 * 1D END AS odd,
  DATE'2020-01-01' + CAST(id % 6 AS INT) AS d FROM RANGE(40)

query tolerance=1e-9
SELECT k, percentile(x, array(0.1, 0.5)), percentile(m, array(0.1, 0.5, 1D)), percentile(DISTINCT w, array(0.1, 0.5))
  FROM t GROUP BY k

-- one group a row
query tolerance=1e-9
SELECT id, percentile(x, array(0D, 0.5)), percentile(m, 0.3) FROM t GROUP BY id

-- NaN and infinity
query tolerance=1e-9
SELECT k, percentile(odd, array(0.1, 0.7, 0.9, 1D)), median(odd) FROM t GROUP BY k

-- no rows
query tolerance=1e-9
SELECT percentile(x, array(0.1, 0.5)), percentile(x, 0.5), median(x) FROM t WHERE id < 0

-- no shares
query context_declines(percentile with an empty array is not supported) tolerance=1e-9
SELECT k, percentile(x, array()) FROM t GROUP BY k

-- a frequency
query context_declines(percentile cannot take 3) tolerance=1e-9
SELECT k, percentile(x, 0.3, id), percentile(id, 0.3, IF(b, 2, NULL)), percentile(x, 0.3, 2) FROM t GROUP BY k

-- a frequency and several shares
query context_declines(percentile cannot take 3) tolerance=1e-9
SELECT k, percentile(x, array(0.3, 0.8), w), percentile(x, array(0.3, 0.8), w) FILTER (WHERE b) FROM t GROUP BY k

-- several shares over a window
query tolerance=1e-9
SELECT id, percentile(x, array(0.3, 0.1)) OVER (PARTITION BY k ORDER BY id) FROM t

-- a frequency over a window
-- MinSparkVersion: 4.2
query context_declines(percentile cannot take 3) tolerance=1e-9
SELECT id, percentile(x, 0.3, w) FILTER (WHERE b) OVER (PARTITION BY k) FROM t

query context_declines(WITHIN GROUP is not supported) tolerance=1e-9
SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY x), percentile_cont(0.3) WITHIN GROUP (ORDER BY x DESC) FROM t
  GROUP BY k

-- MinSparkVersion: 4.0
query context_declines(unknown function percentile_disc) tolerance=1e-9
SELECT k, percentile_disc(0.3) WITHIN GROUP (ORDER BY x DESC), percentile_disc(0.7) WITHIN GROUP (ORDER BY m) FROM t
  GROUP BY k

-- MinSparkVersion: 4.0
query context_declines(WITHIN GROUP is not supported) tolerance=1e-9
SELECT percentile_cont(array(0.3, 0.1)) WITHIN GROUP (ORDER BY x DESC) FILTER (WHERE k = 1),
  percentile_disc(array(0.3, 0D, 1D)) WITHIN GROUP (ORDER BY odd DESC) FROM t

-- no rows within the group
-- MinSparkVersion: 4.0
query context_declines(WITHIN GROUP is not supported) tolerance=1e-9
SELECT percentile_cont(0.3) WITHIN GROUP (ORDER BY x DESC), percentile_disc(0.7) WITHIN GROUP (ORDER BY x),
  mode() WITHIN GROUP (ORDER BY x > 1) FROM t WHERE id < 0

-- MinSparkVersion: 4.0
query context_declines(WITHIN GROUP is not supported) tolerance=1e-9
SELECT id, percentile_cont(0.5) WITHIN GROUP (ORDER BY x DESC) OVER (PARTITION BY k) FROM t

-- the lowest of equally frequent values
-- MinSparkVersion: 4.0
query
SELECT k, mode(s, true), mode(id, true), mode(m, true), mode(d, true), mode(b, true) FROM t GROUP BY k

-- the lowest or the highest
-- MinSparkVersion: 4.0
query context_declines(WITHIN GROUP is not supported)
SELECT k, mode() WITHIN GROUP (ORDER BY s), mode() WITHIN GROUP (ORDER BY s DESC), mode() WITHIN GROUP (ORDER BY m DESC)
  FROM t GROUP BY k

-- over a window
-- MinSparkVersion: 4.2
query
SELECT id, mode(s, true) OVER (PARTITION BY k ORDER BY id) AS a, mode(s, true) FILTER (WHERE b) OVER (PARTITION BY k) AS c
  FROM t

-- MinSparkVersion: 4.0
query expect_fallback(Spark counts -0.0 and 0.0 apart) context_declines(Spark counts -0.0 and 0.0 apart)
SELECT mode(x, true) FROM t WHERE k = 1

-- MinSparkVersion: 4.0
query expect_fallback(depends on the order of Spark's hash map)
SELECT mode(k) FROM t WHERE k = 1

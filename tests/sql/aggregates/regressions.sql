-- Linear regressions: NULL in either column, columns of one value, one pair, no pair.

statement
CREATE TEMP VIEW t AS
SELECT id, id % 3 AS k, id % 4 AS w, IF(id % 7 = 3, NULL, id / 4D + id % 3) AS x,
  IF(id % 5 = 3, NULL, CAST(id % 7 AS DECIMAL(9, 2))) AS y, id % 2 = 0 AS b FROM RANGE(60)

query context_declines(unknown function regr_count) tolerance=1e-9
SELECT k, regr_count(x, y), regr_avgx(x, y), regr_avgy(x, y) FROM t GROUP BY k

-- MinSparkVersion: 4.0
query tolerance=1e-9
SELECT k, regr_r2(x, y), regr_slope(x, y), regr_intercept(x, y), regr_sxx(x, y), regr_sxy(x, y), regr_syy(x, y) FROM t
  GROUP BY k

-- the independent variable is a constant
-- MinSparkVersion: 4.0
query tolerance=1e-9
SELECT w, regr_r2(x, w), regr_slope(x, w), regr_intercept(x, w), regr_sxx(x, w), regr_sxy(x, w), regr_syy(x, w) FROM t
  GROUP BY w

-- the dependent variable is a constant
-- MinSparkVersion: 4.0
query tolerance=1e-9
SELECT w, regr_r2(w, x), regr_slope(w, x), regr_intercept(w, x), regr_sxx(w, x), regr_sxy(w, x), regr_syy(w, x) FROM t
  GROUP BY w

-- one pair at most
-- MinSparkVersion: 4.0
query tolerance=1e-9
SELECT id, regr_r2(x, y), regr_slope(x, y), regr_intercept(x, y), regr_sxx(x, y), regr_sxy(x, y), regr_syy(x, y) FROM t
  GROUP BY id

-- no rows
-- MinSparkVersion: 4.0
query
SELECT regr_r2(x, y), regr_slope(x, y), regr_intercept(x, y), regr_sxx(x, y), regr_sxy(x, y), regr_syy(x, y) FROM t
  WHERE id < 0

-- MinSparkVersion: 4.0
query tolerance=1e-9
SELECT k, regr_slope(x, y) FILTER (WHERE b), regr_r2(DISTINCT x, w), regr_sxx(x, y) FILTER (WHERE b) FROM t GROUP BY k

-- over a window
-- MinSparkVersion: 4.0
query tolerance=1e-9
SELECT id, regr_sxx(x, y) OVER (PARTITION BY k ORDER BY id) AS a, regr_syy(x, id) OVER (PARTITION BY k) AS c FROM t

-- Sums, averages and extremes of decimals: types, rounding, overflow.

statement
CREATE TEMP VIEW t AS
SELECT id % 3 AS k, CAST(id * 1.11 - 7 AS DECIMAL(5, 2)) AS narrow, CAST(IF(id % 4 = 0, NULL, id * 12345678.125) AS DECIMAL(18, 3)) AS m,
  CAST(id * 9999999999999999.99 AS DECIMAL(30, 4)) AS wide, CAST(id AS DECIMAL(38, 0)) * 1000000000000000000000000000000 AS huge,
  CAST(0.000001 * id AS DECIMAL(7, 6)) AS small FROM RANGE(40)

query
SELECT sum(narrow), sum(m), sum(wide), sum(small) FROM t

query
SELECT k, sum(narrow), sum(m), sum(wide), sum(huge), sum(small) FROM t GROUP BY k

query
SELECT k, avg(narrow), avg(m), avg(wide), avg(small) FROM t GROUP BY k

query
SELECT avg(narrow), avg(m), avg(wide), avg(small), avg(huge) FROM t

query
SELECT k, min(narrow), max(m), min(wide), max(huge) FROM t GROUP BY k

query
SELECT k, sum(DISTINCT narrow), count(DISTINCT m), avg(DISTINCT small) FROM t GROUP BY k

query
SELECT narrow, count(*) FROM t GROUP BY narrow

query
SELECT m, wide, count(*) FROM t GROUP BY m, wide

query
SELECT k, sum(narrow * m), sum(narrow / 3), sum(m % 7) FROM t GROUP BY k

query
SELECT sum(narrow) / count(*), sum(m) / sum(narrow), avg(narrow) * 100 FROM t

query
SELECT k, sum(CAST(narrow AS DECIMAL(38, 10))), sum(CAST(small AS DECIMAL(38, 20))) FROM t GROUP BY k

query context_declines(unknown function try_sum)
SELECT k, try_sum(huge * 9), try_avg(huge) FROM t GROUP BY k

-- more digits than a decimal has
query expect_error(ARITHMETIC_OVERFLOW)
SELECT k, sum(CAST(99999999999999999999999999999999999999 AS DECIMAL(38, 0))) FROM t GROUP BY k

query context_declines(unknown function try_sum)
SELECT k, try_sum(CAST(99999999999999999999999999999999999999 AS DECIMAL(38, 0))) FROM t GROUP BY k

query
SELECT k, count_if(narrow > 0), bool_and(m IS NULL OR m >= 0), max_by(narrow, m) FROM t WHERE m IS NOT NULL GROUP BY k

query tolerance=1e-9
SELECT k, stddev(narrow), var_pop(m), corr(narrow, small) FROM t GROUP BY k

query
SELECT k, percentile(narrow, 0.5), median(m) FROM t GROUP BY k

query
SELECT sum(narrow) FILTER (WHERE k = 1), avg(m) FILTER (WHERE narrow > 10), sum(m) FILTER (WHERE k > 5) FROM t

query
SELECT k, sum(narrow) AS s FROM t GROUP BY k HAVING sum(narrow) > 100.005 AND avg(narrow) <> 0

query
SELECT k, sum(narrow) OVER (PARTITION BY k ORDER BY m, narrow) AS s, avg(m) OVER (PARTITION BY k) AS a FROM t

-- decimals and other numbers
query
SELECT k, sum(narrow + 1), sum(narrow + k), sum(narrow * 1.5D) > 0, max(narrow + 0.001) FROM t GROUP BY k

query
SELECT sum(m), avg(m), max(m), count(m) FROM t WHERE m IS NULL

query
SELECT k, sum(-narrow), sum(abs(narrow)), min(round(m, 1)), max(floor(narrow)), max(ceil(m)) FROM t GROUP BY k

-- Only arithmetic of decimals depends on this setting.
-- Config: spark.sql.decimalOperations.allowPrecisionLoss=false

statement
CREATE TEMP VIEW t AS SELECT * FROM VALUES (1, 1.5BD, 2.25D), (1, 123456.78BD, 0.5D), (2, -7.1BD, 3D), (NULL, NULL, NULL) AS t(k, m, d)

query
SELECT k, count(*) AS n, sum(m) AS s, avg(m) AS a, min(m) AS lo, sum(d * 2 + 1) AS x FROM t WHERE m > 1 GROUP BY k

query
SELECT CAST(m AS DECIMAL(38, 10)) AS a, round(m, 1) AS b, -m AS c, abs(m) AS e FROM t ORDER BY m

query expect_fallback(arithmetic of decimals)
SELECT k, sum(m * m) AS s FROM t WHERE k > 0 GROUP BY k

query expect_fallback(arithmetic of decimals)
SELECT k, max(d) AS n FROM t WHERE m + 1BD > 2BD GROUP BY k

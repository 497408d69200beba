-- Without ANSI casts give NULL, or wrap around, where they raise with it.
-- Config: spark.sql.ansi.enabled=false

statement
CREATE TEMP VIEW t AS
SELECT * FROM VALUES (1, 100000, 10000000000L, 1.5D, 123.45BD, ' 42 '), (2, -200, -1L, DOUBLE('NaN'), -0.01BD, 'x'),
  (3, 2147483647, 9223372036854775807L, 1e300D, 999.99BD, '1e3'), (4, NULL, NULL, NULL, NULL, NULL) AS t(id, i, l, d, m, s)

query
SELECT id, CAST(i AS TINYINT), CAST(i AS SMALLINT), CAST(l AS INT), CAST(d AS INT), CAST(d AS BIGINT), CAST(m AS TINYINT) FROM t

query
SELECT id, CAST(s AS INT), CAST(s AS DOUBLE), CAST(s AS DATE), CAST(s AS BOOLEAN), CAST(s AS DECIMAL(4, 1)), CAST(s AS TIMESTAMP) FROM t

query
SELECT id, CAST(m AS DECIMAL(3, 1)), CAST(d AS DECIMAL(5, 2)), CAST(l AS DECIMAL(5, 0)), m * 1e36BD FROM t

query
SELECT id, i + 2147483647, l * 2, i / 0, i % 0, i div 0, pmod(i, 0), -l, abs(i - 2147483647 - 2) FROM t

query context_declines(implicit casts of strings outside ANSI mode are not supported)
SELECT id, i = s, s + 1, s > 5, concat(s, i) FROM t

query
SELECT id, array(1, 2)[i], element_at(array(1, 2), 3), elt(5, 'a', 'b'), split_part(s, 'x', 1) FROM t

-- MinSparkVersion: 4.0
query
SELECT id, to_date(s), to_timestamp(s), to_date(s, 'yyyy'), make_date(2020, i, 1), next_day(DATE'2020-01-01', s) FROM t

query
SELECT sum(l), avg(l), sum(i), sum(m), sum(m * 1e34BD), sum(CAST(l AS DECIMAL(38, 0)) * 1e15BD) FROM t

query
SELECT i % 3, sum(l), count(*) FROM t GROUP BY 1

query context_declines(implicit casts of strings outside ANSI mode are not supported)
SELECT id, CASE WHEN i > 0 THEN i ELSE s END, coalesce(i, s), nullif(i, s), greatest(i, l), if(d > 1, d, m) FROM t

query context_declines(implicit casts of strings outside ANSI mode are not supported)
SELECT id FROM t WHERE s = 42 OR i / 0 IS NULL

query
SELECT id, round(i, -9), round(l, -19), ceil(d), floor(d), bround(m, -1) FROM t

-- true does not fit into a decimal without a digit before the point
query
SELECT id, CAST(id > 1 AS DECIMAL(1, 1)) AS d, CAST(id > 1 AS DECIMAL(1, 1)) IS NULL AS n, CAST(id > 1 AS DECIMAL(2, 1)) IS NULL AS o FROM RANGE(3)

query
SELECT id FROM RANGE(3) WHERE CAST(id > 1 AS DECIMAL(2, 2)) IS NOT NULL

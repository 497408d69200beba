-- Only what parses or prints times by a pattern, or in JSON strings, depends on the time parser of Spark 2.
-- Config: spark.sql.legacy.timeParserPolicy=LEGACY
-- MinSparkVersion: 4.0

statement
CREATE TEMP VIEW t AS SELECT * FROM VALUES
  (1, '2020-10-05', DATE'0001-01-01', TIMESTAMP'1500-02-28 10:00:00', '{"a":"2020-10-05"}'), (2, '2020-01-05', DATE'1582-10-15', TIMESTAMP'1890-01-01 00:00:00.123456', '{"a":"2020-01-05"}'),
  (3, NULL, NULL, NULL, NULL) AS v(id, s, d, ts, j)

query
SELECT d AS a, CAST(ts AS STRING) AS b, try_cast(s AS DATE) AS c, try_cast(s AS TIMESTAMP) AS e, unix_timestamp(ts) AS f,
  to_unix_timestamp(d) AS g, concat(s, ts) AS h, count(*) FROM t GROUP BY ALL

query
SELECT date_trunc('MONTH', ts) AS m, max(d), min(ts), sum(id) FROM t GROUP BY 1

query expect_fallback(casts of dates to strings are not supported)
SELECT CAST(d AS STRING) AS a, count(*) FROM t GROUP BY 1

query expect_fallback(casts of dates to strings are not supported)
SELECT CAST(array(d) AS ARRAY<STRING>)[0] AS a, count(*) FROM t GROUP BY 1

-- Date literals: the JSON of the plan prints the year 0 as 0001, and days that the hybrid calendar lacks as 1582-10-15.
query
SELECT id FROM t WHERE d = DATE'0000-01-01' OR d = DATE'1582-10-10' OR d < DATE'-0044-03-15'

query expect_fallback(patterns of times are not supported)
SELECT to_timestamp(s, 'yyyy-MM-dd') AS d, count(*) FROM t GROUP BY 1

query expect_fallback(patterns of times are not supported)
SELECT date_format(ts, 'yyyy-MM-dd HH:mm:ss') AS d, count(*) FROM t GROUP BY 1

query expect_fallback(times in JSON strings are not supported)
SELECT from_json(j, 'a date').a AS d, count(*) FROM t GROUP BY 1

query expect_fallback(times in JSON strings are not supported)
SELECT to_json(named_struct('d', d, 'ts', ts)) AS j, count(*) FROM t GROUP BY 1

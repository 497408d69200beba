-- Truncated times where midnight happens twice.
-- Config: spark.sql.session.timeZone=America/Havana
-- Tables: hours

query
SELECT ts, unix_seconds(date_trunc('DAY', ts)) AS t FROM t ORDER BY ts

query expect_fallback(a date_trunc to a midnight that happens twice) context_declines(a date_trunc to a midnight that happens twice)
SELECT ts, unix_seconds(date_trunc('WEEK', ts)) AS a, unix_seconds(date_trunc('MONTH', ts)) AS b FROM t ORDER BY ts

query
SELECT ts, unix_seconds(date_trunc('QUARTER', ts)) AS a, unix_seconds(date_trunc('YEAR', ts)) AS b, unix_seconds(date_trunc('HOUR', ts)) AS c FROM t ORDER BY ts

query
SELECT ts, unix_seconds(CAST(CAST(ts AS DATE) AS TIMESTAMP)) AS t FROM t ORDER BY ts

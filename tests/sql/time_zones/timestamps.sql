-- Timestamps, dates and their strings in zones with daylight saving, a half-hour offset and none.
-- Config: spark.sql.session.timeZone=Europe/Berlin,America/New_York,+05:45

statement
CREATE TEMP VIEW t AS
SELECT id, timestamp_seconds(s) AS ts, timestamp_ntz'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, s) AS n, CAST(timestamp_seconds(s) AS DATE) AS d
FROM VALUES (1, 1616893200), (2, 1635638400), (3, 1635642000), (4, 1615705200), (5, 1636263000), (6, -315619200), (7, 0), (8, 1583020799), (9, NULL) AS v(id, s)

query
SELECT id, CAST(ts AS STRING) AS a, CAST(n AS STRING) AS b, CAST(d AS STRING) AS c FROM t

query
SELECT id, year(ts) AS y, month(ts) AS m, day(ts) AS d, hour(ts) AS h, minute(ts) AS i, second(ts) AS s, dayofweek(ts) AS w FROM t

query
SELECT id, CAST(ts AS DATE) AS a, CAST(d AS TIMESTAMP) AS b, CAST(ts AS TIMESTAMP_NTZ) AS c, CAST(n AS TIMESTAMP) AS e FROM t

query
SELECT id, date_trunc('DAY', ts) AS a, date_trunc('HOUR', ts) AS b, date_trunc('MONTH', ts) AS c, date_trunc('WEEK', ts) AS e, date_trunc('YEAR', n) AS f FROM t

query
SELECT id, ts + INTERVAL 1 DAY AS a, ts + INTERVAL 24 HOURS AS b, ts - INTERVAL 1 MONTH AS c, n + INTERVAL 1 DAY AS e FROM t

query
SELECT id, ts > TIMESTAMP'2021-10-31 02:30:00' AS a, ts >= d AS b, d = CAST(ts AS DATE) AS c, ts > '2021-03-14 03:00:00' AS e FROM t

query
SELECT d, count(*), min(ts), max(ts) FROM t GROUP BY d

query
SELECT date_trunc('DAY', ts) AS day, count(*) AS n FROM t GROUP BY 1

query
SELECT CAST(ts AS DATE) AS day, hour(ts) AS h, count(*) AS n FROM t GROUP BY 1, 2

query
SELECT id, to_timestamp(s) AS a, CAST(s AS TIMESTAMP) AS b, unix_timestamp(s) AS c FROM (SELECT id, CAST(n AS STRING) AS s FROM t)

query
SELECT id, date_format(ts, 'yyyy-MM-dd HH:mm:ss') AS a, from_unixtime(unix_timestamp(ts)) AS b FROM t

-- with a pattern, Spark reads a timestamp_ntz as UTC, not in the session's time zone
query expect_fallback(as a timestamp with a pattern) context_declines(of a timestamp_ntz with a pattern is not supported)
SELECT id, to_timestamp(x, 'yyyy') AS a, to_date(x, 'yyyy') AS b FROM (SELECT id, CAST(ts AS TIMESTAMP_NTZ) AS x FROM t)

query
SELECT id, from_utc_timestamp(ts, 'America/Los_Angeles') AS a, to_utc_timestamp(ts, 'Asia/Tokyo') AS b FROM t

query
SELECT id, unix_timestamp(ts) AS a, unix_seconds(ts) AS b, unix_timestamp(d) AS c, unix_date(d) AS e FROM t

query
SELECT id, datediff(ts, DATE'2021-01-01') AS a, months_between(ts, TIMESTAMP'2020-02-29 12:00:00') AS b, last_day(ts) AS c, ts - n IS NULL AS e FROM t

query
SELECT id, make_timestamp(year(ts), month(ts), day(ts), hour(ts), minute(ts), second(ts)) AS a, make_timestamp(2021, 3, 28, 2, 30, 0) AS b FROM t

query
SELECT x.id, y.id FROM t x JOIN t y ON CAST(x.ts AS DATE) = CAST(y.ts AS DATE)

query
SELECT id, ts FROM t ORDER BY ts DESC NULLS LAST, id

query
SELECT id, count(*) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW) AS n FROM t

query
SELECT * FROM VALUES (TIMESTAMP'2021-10-31 02:30:00'), (TIMESTAMP'2021-03-28 02:30:00 America/New_York'), (NULL) v(t)

query
SELECT id FROM t WHERE ts BETWEEN TIMESTAMP'2021-03-14 00:00:00' AND TIMESTAMP'2021-03-28 23:59:59'

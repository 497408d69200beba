-- Timestamps and intervals of months, days and microseconds at once, over changes of clocks and ends of months.
-- Config: spark.sql.session.timeZone=UTC,America/New_York

statement
CREATE TEMP VIEW t AS
SELECT id, timestamp_seconds(s) AS ts, CAST(timestamp_seconds(s) AS TIMESTAMP_NTZ) AS n, CAST(id AS INT) - 3 AS k, IF(id = 4, NULL, CAST(id * 7.25 - 20 AS DECIMAL(18, 6))) AS x
FROM VALUES (1, 1616893200), (2, 1635638400), (3, 1635642000), (4, 1615705200), (5, 1636263000), (6, -315619200), (7, 0), (8, 1583020799), (9, NULL), (10, 1580474096) AS v(id, s)

query context_declines(unknown function make_interval)
SELECT id, ts + make_interval(0, k) AS a, ts + make_interval(k, 0, 0, 1) AS b, n + make_interval(0, 13, k, k, 25, -61, x) AS c, ts - make_interval(1, 1, 1, 1, 1, 1, x) AS e FROM t

query context_declines(unknown function make_interval)
SELECT id, ts + make_interval(0, 0, 0, 0, 24 * k) AS a, ts + make_interval(0, 0, 0, k) AS b, ts + make_interval(0, 0, 0, 0, 0, 0, x) AS c, ts + make_interval() AS e FROM t

query context_declines(unknown function make_interval)
SELECT CAST(ts + make_interval(0, 0, 0, k) AS DATE) AS day, count(*) AS n FROM t GROUP BY 1

-- constants, of which a day's hours are no day
query context_declines(make_interval)
SELECT id, ts + make_interval(0, 1, 0, 1, 25) AS a, n - make_interval(1, -2, 0, 3, 4, 5, 6.000007) AS b, ts + make_interval(0, 0, 0, 1, -23) AS c FROM t

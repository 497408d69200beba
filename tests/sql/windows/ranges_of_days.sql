-- Frames of days over dates.

statement
CREATE TEMP VIEW days AS
SELECT id, id % 3 AS g, IF(id % 11 = 0, NULL, DATE'2024-02-20' + CAST(id * 7 % 40 AS INT)) AS d FROM RANGE(120)

-- MinSparkVersion: 4.0
query
SELECT id, count(*) OVER w AS n, sum(id) OVER w AS s, max(id) OVER w AS z FROM days
  WINDOW w AS (PARTITION BY g ORDER BY d RANGE BETWEEN INTERVAL 2 DAYS PRECEDING AND CURRENT ROW) ORDER BY id

-- MinSparkVersion: 4.0
query
SELECT id, count(*) OVER w AS n, sum(id) OVER w AS s, max(id) OVER w AS z FROM days
  WINDOW w AS (PARTITION BY g ORDER BY d RANGE BETWEEN INTERVAL '3' DAY PRECEDING AND INTERVAL '1' DAY PRECEDING) ORDER BY id

-- MinSparkVersion: 4.0
query
SELECT id, count(*) OVER w AS n, sum(id) OVER w AS s, max(id) OVER w AS z FROM days
  WINDOW w AS (PARTITION BY g ORDER BY d RANGE BETWEEN CURRENT ROW AND INTERVAL 1 WEEK FOLLOWING) ORDER BY id

-- MinSparkVersion: 4.0
query
SELECT id, count(*) OVER w AS n, sum(id) OVER w AS s, max(id) OVER w AS z FROM days
  WINDOW w AS (PARTITION BY g ORDER BY d RANGE BETWEEN INTERVAL '-1' DAY PRECEDING AND INTERVAL '2' DAY + INTERVAL '1' DAY FOLLOWING) ORDER BY id

-- MinSparkVersion: 4.0
query
SELECT id, count(*) OVER w AS n, sum(id) OVER w AS s, max(id) OVER w AS z FROM days
  WINDOW w AS (PARTITION BY g ORDER BY d DESC NULLS FIRST RANGE BETWEEN INTERVAL 2 DAYS PRECEDING AND CURRENT ROW) ORDER BY id

-- MinSparkVersion: 4.0
query
SELECT id, count(*) OVER w AS n, sum(id) OVER w AS s, max(id) OVER w AS z FROM days
  WINDOW w AS (PARTITION BY g ORDER BY d DESC NULLS FIRST RANGE BETWEEN INTERVAL '3' DAY PRECEDING AND INTERVAL '1' DAY PRECEDING) ORDER BY id

-- MinSparkVersion: 4.0
query
SELECT id, count(*) OVER w AS n, sum(id) OVER w AS s, max(id) OVER w AS z FROM days
  WINDOW w AS (PARTITION BY g ORDER BY d DESC NULLS FIRST RANGE BETWEEN CURRENT ROW AND INTERVAL 1 WEEK FOLLOWING) ORDER BY id

-- MinSparkVersion: 4.0
query
SELECT id, count(*) OVER w AS n, sum(id) OVER w AS s, max(id) OVER w AS z FROM days
  WINDOW w AS (PARTITION BY g ORDER BY d DESC NULLS FIRST RANGE BETWEEN INTERVAL '-1' DAY PRECEDING AND INTERVAL '2' DAY + INTERVAL '1' DAY FOLLOWING) ORDER BY id

-- MinSparkVersion: 4.0
query
SELECT id, count(*) OVER w AS n, sum(id) OVER w AS s, max(id) OVER w AS z FROM days
  WINDOW w AS (PARTITION BY g ORDER BY d NULLS LAST RANGE BETWEEN INTERVAL 2 DAYS PRECEDING AND CURRENT ROW) ORDER BY id

-- MinSparkVersion: 4.0
query
SELECT id, count(*) OVER w AS n, sum(id) OVER w AS s, max(id) OVER w AS z FROM days
  WINDOW w AS (PARTITION BY g ORDER BY d NULLS LAST RANGE BETWEEN INTERVAL '3' DAY PRECEDING AND INTERVAL '1' DAY PRECEDING) ORDER BY id

-- MinSparkVersion: 4.0
query
SELECT id, count(*) OVER w AS n, sum(id) OVER w AS s, max(id) OVER w AS z FROM days
  WINDOW w AS (PARTITION BY g ORDER BY d NULLS LAST RANGE BETWEEN CURRENT ROW AND INTERVAL 1 WEEK FOLLOWING) ORDER BY id

-- MinSparkVersion: 4.0
query
SELECT id, count(*) OVER w AS n, sum(id) OVER w AS s, max(id) OVER w AS z FROM days
  WINDOW w AS (PARTITION BY g ORDER BY d NULLS LAST RANGE BETWEEN INTERVAL '-1' DAY PRECEDING AND INTERVAL '2' DAY + INTERVAL '1' DAY FOLLOWING) ORDER BY id

query expect_error(DATATYPE_MISMATCH.RANGE_FRAME_INVALID_TYPE)
SELECT sum(id) OVER (ORDER BY d RANGE BETWEEN INTERVAL '24' HOUR PRECEDING AND CURRENT ROW) FROM days

query expect_error(DATATYPE_MISMATCH.RANGE_FRAME_INVALID_TYPE)
SELECT sum(id) OVER (ORDER BY d RANGE BETWEEN INTERVAL '1 00' DAY TO HOUR PRECEDING AND CURRENT ROW) FROM days

-- frames of months, whose ends are the last days of shorter ones
statement
CREATE TEMP VIEW times AS
SELECT id, g, d, CAST(d AS TIMESTAMP) + make_dt_interval(0, id % 5, id % 7, 0.000001 * id) AS ts, CAST(CAST(d AS TIMESTAMP) AS TIMESTAMP_NTZ) AS n
FROM (SELECT id, id % 3 AS g, IF(id % 11 = 0, NULL, DATE'2023-12-25' + CAST(id * 7 % 130 AS INT)) AS d FROM RANGE(150))

query context_declines(year-month intervals are supported only when added to dates or timestamps)
SELECT id, count(*) OVER w AS n, sum(id) OVER w AS s, max(id) OVER w AS z FROM times
  WINDOW w AS (PARTITION BY g ORDER BY d RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND CURRENT ROW) ORDER BY id

query context_declines(year-month intervals are supported only when added to dates or timestamps)
SELECT id, count(*) OVER w AS n, sum(id) OVER w AS s FROM times
  WINDOW w AS (PARTITION BY g ORDER BY d DESC NULLS FIRST RANGE BETWEEN INTERVAL '2' MONTH PRECEDING AND INTERVAL '1' MONTH PRECEDING) ORDER BY id

query context_declines(year-month intervals are supported only when added to dates or timestamps)
SELECT id, count(*) OVER w AS n, min(ts) OVER w AS s FROM times
  WINDOW w AS (ORDER BY ts RANGE BETWEEN INTERVAL '1' MONTH PRECEDING AND INTERVAL '2' MONTH FOLLOWING) ORDER BY id

query context_declines(year-month intervals are supported only when added to dates or timestamps)
SELECT id, count(*) OVER w AS n, max(d) OVER w AS s FROM times
  WINDOW w AS (PARTITION BY g ORDER BY n NULLS LAST RANGE BETWEEN INTERVAL '1' MONTH FOLLOWING AND UNBOUNDED FOLLOWING) ORDER BY id

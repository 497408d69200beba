-- Windows of time: tumbling, sliding, and sessions, which end where a gap follows.

statement
CREATE TEMP VIEW t AS
SELECT id, IF(id % 11 = 0, NULL, id % 3) AS g, IF(id % 7 = 0, NULL, TIMESTAMP'2024-03-31 00:00:00' + make_dt_interval(0, 0, 0, (id * id * 37) % 9001)) AS ts,
  CASE WHEN id % 4 < 2 THEN (0.5D - id % 4) * 0.0D WHEN id % 4 = 2 THEN double('NaN') END AS f,
  TIMESTAMP_NTZ'2024-01-01 00:00:00' + make_dt_interval(0, 0, 0, (id * 61) % 4000) AS n,
  IF(id % 2 = 0, '30 seconds', '4 minutes') AS gap
FROM RANGE(200)

query
SELECT window, count(*), sum(id) FROM t GROUP BY window(ts, '5 minutes')

query
SELECT g, window.start, window.end, max(id) FROM t GROUP BY g, window(ts, '10 minutes', '4 minutes', '1 minute')

query
SELECT session_window, count(*), sum(id), min(ts), max(ts) FROM t GROUP BY session_window(ts, '1 minute')

-- a group with NULL as its key is one as any other
query
SELECT g, session_window, count(*) AS n, avg(id) AS a, max(id) FILTER (WHERE id % 2 = 0) AS m FROM t GROUP BY g, session_window(ts, '5 minutes')

-- windows that only touch are one session
query
SELECT session_window.start, session_window.end, count(*) FROM VALUES (TIMESTAMP'2024-01-01 00:00:00'), (TIMESTAMP'2024-01-01 00:01:00'),
  (TIMESTAMP'2024-01-01 00:02:00.000001'), (TIMESTAMP'2024-01-01 00:02:00.000001') AS v(ts) GROUP BY session_window(ts, '1 minute')

query
SELECT f, session_window(n, '45 seconds') AS s, count(*) FROM t GROUP BY f, session_window(n, '45 seconds')

query
SELECT g + 1 AS h, session_window.end AS e, sum(id) + 1 AS x FROM t WHERE id < 150 GROUP BY g + 1, session_window(ts, '2 minutes') HAVING count(*) > 1 ORDER BY h, e

-- gaps of the rows' own, of which one may be within another
query expect_fallback(calendar intervals) context_declines(not a constant string)
SELECT g, session_window, count(*) FROM t GROUP BY g, session_window(ts, gap)

query
SELECT g, session_window, count(*) FROM t GROUP BY g, session_window(ts, '1 day 20 minutes')

query
SELECT session_window, count(*) FROM t WHERE id < 0 GROUP BY session_window(ts, '1 minute')

query expect_fallback(DISTINCT by session windows) context_declines(by session windows)
SELECT g, session_window, count(DISTINCT id % 5) FROM t GROUP BY g, session_window(ts, '5 minutes')

query expect_fallback(by session windows) context_declines(by session windows)
SELECT g, session_window, sort_array(collect_list(id)) FROM t GROUP BY g, session_window(ts, '5 minutes')

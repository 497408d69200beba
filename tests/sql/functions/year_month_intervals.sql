-- Intervals of years and months: made, compared, computed, grouped, sorted, aggregated, joined and cast.

statement
CREATE TEMP VIEW t AS
SELECT id, CAST(id % 3 AS INT) AS k, CAST(IF(id % 7 = 3, NULL, id * 5 - 40) AS INT) AS m, DATE'2024-01-31' AS d,
  TIMESTAMP'2024-02-29 12:34:56' AS ts, id % 4 / 2D AS x, concat(id - 9, '-', id % 12) AS s FROM RANGE(30)

query context_declines(unknown function make_ym_interval)
SELECT id, y, -y AS a, abs(y) AS b, y + INTERVAL '1-1' YEAR TO MONTH AS c, y - INTERVAL '2' MONTH AS e, y * 2 AS f, y / 3 AS g,
  y * x AS h, extract(YEAR FROM y) AS i, extract(MONTH FROM y) AS j, CAST(y AS INTERVAL YEAR) AS l
FROM (SELECT *, make_ym_interval(0, m) AS y FROM t)

query context_declines(unknown function make_ym_interval)
SELECT y, count(*) AS n, sum(y) AS a, avg(y) AS b, min(y) AS c, max(y) AS e, count(DISTINCT y) AS f, first(y) AS g
FROM (SELECT *, make_ym_interval(k, k) AS y FROM t) GROUP BY y

query context_declines(unknown function make_ym_interval)
SELECT k, sum(y) AS a, avg(y) AS b, min(y) AS c, max(y) AS e, count(y) AS f, max_by(y, id) AS g, min_by(id, y) AS h
FROM (SELECT *, make_ym_interval(0, m) AS y FROM t) GROUP BY k

query context_declines(unknown function make_ym_interval)
SELECT sum(y) AS a, avg(y) AS b, max(y) AS c, approx_count_distinct(y) AS e
FROM (SELECT make_ym_interval(0, m) AS y FROM t WHERE id > 100)

query context_declines(unknown function make_ym_interval)
SELECT y, id FROM (SELECT id, make_ym_interval(0, m) AS y FROM t) ORDER BY y DESC NULLS LAST, id

query context_declines(unknown function make_ym_interval)
SELECT y, id FROM (SELECT id, make_ym_interval(0, m) AS y FROM t) ORDER BY y, id LIMIT 5

query context_declines(unknown function make_ym_interval)
SELECT a.id, b.id AS j, a.y FROM (SELECT id, make_ym_interval(k, k) AS y FROM t) a
  JOIN (SELECT id, make_ym_interval(0, m) AS y FROM t) b ON a.y = b.y

query context_declines(unknown function make_ym_interval)
SELECT id, y > INTERVAL '1' YEAR AS a, y IN (INTERVAL '5' MONTH, INTERVAL '1-3' YEAR TO MONTH) AS b, y <=> NULL AS c,
  coalesce(y, INTERVAL '3' MONTH) AS e, greatest(y, INTERVAL '3' MONTH) AS f, if(k = 1, y, INTERVAL '1' YEAR) AS g,
  hash(y) AS h, xxhash64(y) AS i, y BETWEEN INTERVAL '-1' YEAR AND INTERVAL '1' YEAR AS j
FROM (SELECT *, make_ym_interval(0, m) AS y FROM t)

query context_declines(unknown function make_ym_interval)
SELECT id, sum(y) OVER (PARTITION BY k ORDER BY id) AS a, lag(y) OVER (PARTITION BY k ORDER BY id) AS b,
  max(y) OVER (PARTITION BY k) AS c, rank() OVER (ORDER BY y) AS e, avg(y) OVER (PARTITION BY k ORDER BY id ROWS 2 PRECEDING) AS f
FROM (SELECT *, make_ym_interval(0, m) AS y FROM t)

query context_declines(unknown function make_ym_interval)
SELECT id, CAST(y AS STRING) AS a, CAST(CAST(y AS INTERVAL YEAR) AS STRING) AS b, CAST(CAST(y AS INTERVAL MONTH) AS STRING) AS c,
  CAST(CAST(y AS INTERVAL MONTH) AS SMALLINT) AS e, CAST(CAST(y AS INTERVAL YEAR) AS BIGINT) AS f,
  CAST(CAST(y AS INTERVAL MONTH) AS DECIMAL(12, 2)) AS g, CAST(y * 2 AS STRING) AS h
FROM (SELECT *, make_ym_interval(0, m) AS y FROM t)

query context_declines(interval)
SELECT id, CAST(m AS INTERVAL MONTH) AS a, CAST(m AS INTERVAL YEAR) AS b, CAST(CAST(m AS BIGINT) AS INTERVAL MONTH) AS c FROM t

query context_declines(interval)
SELECT id, CAST(s AS INTERVAL YEAR TO MONTH) AS a, CAST(CAST(m AS STRING) AS INTERVAL YEAR) AS b FROM t

query context_declines(unknown function make_ym_interval)
SELECT id, d + y AS a, d - y AS b, ts + y AS c, ts - y * 2 AS e FROM (SELECT *, make_ym_interval(0, m) AS y FROM t)

query context_declines(unknown function make_ym_interval)
SELECT make_ym_interval(k, 1) AS y FROM t UNION SELECT make_ym_interval(0, m) FROM t

-- MinSparkVersion: 4.0
query expect_error(INTERVAL_ARITHMETIC_OVERFLOW.WITHOUT_SUGGESTION) context_declines(unknown function make_ym_interval)
SELECT make_ym_interval(178956970 + k, 11) AS y FROM t

query expect_error(INTERVAL_DIVIDED_BY_ZERO) context_declines(unknown function make_ym_interval)
SELECT make_ym_interval(1, 1) / k AS y FROM t

-- inside of arrays, on the way
query context_declines(unknown function make_ym_interval)
SELECT k, array_max(collect_list(make_ym_interval(k, m))) AS y, size(array(make_ym_interval(k))) AS n FROM t GROUP BY k

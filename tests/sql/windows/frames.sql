-- Every kind of frame, with ties, NULLs and partitions of one row.

statement
CREATE TEMP VIEW t AS
SELECT * FROM VALUES
  (1, 'a', 1, 10.5D, DATE'2020-01-01'), (2, 'a', 1, 2.0D, DATE'2020-01-03'), (3, 'a', 3, NULL, DATE'2020-01-03'), (4, 'a', 7, 1.0D, NULL),
  (5, 'b', NULL, 4.0D, DATE'2020-02-01'), (6, 'b', NULL, 5.0D, DATE'2020-01-31'), (7, 'b', 2, -1.0D, DATE'2020-02-01'),
  (8, 'c', 5, 0.25D, DATE'2020-03-01'), (9, NULL, 4, 8.0D, DATE'2020-01-01'), (10, NULL, 9, NULL, NULL) AS t(id, g, v, x, d)

query
SELECT id, sum(v) OVER w AS s, count(*) OVER w AS n, min(x) OVER w AS least, max(d) OVER w AS latest FROM t
  WINDOW w AS (PARTITION BY g ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)

query
SELECT id, sum(v) OVER w AS s, count(*) OVER w AS n, min(x) OVER w AS least, max(d) OVER w AS latest FROM t
  WINDOW w AS (PARTITION BY g ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)

query
SELECT id, sum(v) OVER w AS s, count(*) OVER w AS n, min(x) OVER w AS least, max(d) OVER w AS latest FROM t
  WINDOW w AS (PARTITION BY g ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)

query
SELECT id, sum(v) OVER w AS s, count(*) OVER w AS n, min(x) OVER w AS least, max(d) OVER w AS latest FROM t
  WINDOW w AS (PARTITION BY g ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)

query
SELECT id, sum(v) OVER w AS s, count(*) OVER w AS n, min(x) OVER w AS least, max(d) OVER w AS latest FROM t
  WINDOW w AS (PARTITION BY g ORDER BY id ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING)

query
SELECT id, sum(v) OVER w AS s, count(*) OVER w AS n, min(x) OVER w AS least, max(d) OVER w AS latest FROM t
  WINDOW w AS (PARTITION BY g ORDER BY id ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING)

query
SELECT id, sum(v) OVER w AS s, count(*) OVER w AS n, min(x) OVER w AS least, max(d) OVER w AS latest FROM t
  WINDOW w AS (PARTITION BY g ORDER BY id ROWS 2 PRECEDING)

query
SELECT id, sum(v) OVER w AS s, count(*) OVER w AS n, min(x) OVER w AS least, max(d) OVER w AS latest FROM t
  WINDOW w AS (PARTITION BY g ORDER BY id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)

query
SELECT id, sum(id) OVER w AS s, count(x) OVER w AS n, max(id) OVER w AS most FROM t
  WINDOW w AS (PARTITION BY g ORDER BY v RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)

query
SELECT id, sum(id) OVER w AS s, count(x) OVER w AS n, max(id) OVER w AS most FROM t
  WINDOW w AS (PARTITION BY g ORDER BY v DESC NULLS FIRST RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)

query
SELECT id, sum(id) OVER w AS s, count(x) OVER w AS n, max(id) OVER w AS most FROM t
  WINDOW w AS (PARTITION BY g ORDER BY v RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)

query
SELECT id, sum(id) OVER w AS s, count(x) OVER w AS n, max(id) OVER w AS most FROM t
  WINDOW w AS (PARTITION BY g ORDER BY v DESC NULLS FIRST RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)

query
SELECT id, sum(id) OVER w AS s, count(x) OVER w AS n, max(id) OVER w AS most FROM t
  WINDOW w AS (PARTITION BY g ORDER BY v RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)

query
SELECT id, sum(id) OVER w AS s, count(x) OVER w AS n, max(id) OVER w AS most FROM t
  WINDOW w AS (PARTITION BY g ORDER BY v DESC NULLS FIRST RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)

query
SELECT id, sum(id) OVER w AS s, count(x) OVER w AS n, max(id) OVER w AS most FROM t
  WINDOW w AS (PARTITION BY g ORDER BY v RANGE BETWEEN 5 PRECEDING AND 2 PRECEDING)

query
SELECT id, sum(id) OVER w AS s, count(x) OVER w AS n, max(id) OVER w AS most FROM t
  WINDOW w AS (PARTITION BY g ORDER BY v DESC NULLS FIRST RANGE BETWEEN 5 PRECEDING AND 2 PRECEDING)

query
SELECT id, sum(id) OVER w AS s, count(x) OVER w AS n, max(id) OVER w AS most FROM t
  WINDOW w AS (PARTITION BY g ORDER BY v RANGE BETWEEN CURRENT ROW AND CURRENT ROW)

query
SELECT id, sum(id) OVER w AS s, count(x) OVER w AS n, max(id) OVER w AS most FROM t
  WINDOW w AS (PARTITION BY g ORDER BY v DESC NULLS FIRST RANGE BETWEEN CURRENT ROW AND CURRENT ROW)

query
SELECT id, count(*) OVER (ORDER BY x RANGE BETWEEN 1.5D PRECEDING AND 0.5D FOLLOWING) AS n FROM t

query
SELECT id, sum(v) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s, avg(v) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS a FROM t

query
SELECT id, first_value(x) OVER w AS a, last_value(x) OVER w AS b, nth_value(x, 2) OVER w AS c, first_value(x) IGNORE NULLS OVER w AS d,
  last_value(x) IGNORE NULLS OVER w AS e FROM t WINDOW w AS (PARTITION BY g ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)

query
SELECT id, lag(v) OVER w AS a, lag(v, 2, -1) OVER w AS b, lead(v) OVER w AS c, lead(v, 1, id) OVER w AS d, lag(v) IGNORE NULLS OVER w AS e FROM t
  WINDOW w AS (PARTITION BY g ORDER BY id)

query expect_fallback(lag with an offset that is not a positive constant is not supported)
SELECT id, lag(v, -1) OVER (ORDER BY id) AS a, lead(g, 0) OVER (ORDER BY id) AS b, lag(d, 100) OVER (ORDER BY id) AS c FROM t

query
SELECT id, row_number() OVER w AS a, rank() OVER w AS b, dense_rank() OVER w AS c, percent_rank() OVER w AS d, cume_dist() OVER w AS e FROM t
  WINDOW w AS (PARTITION BY g ORDER BY v, id)

query
SELECT id, rank() OVER w AS b, dense_rank() OVER w AS c, percent_rank() OVER w AS d, cume_dist() OVER w AS e FROM t WINDOW w AS (ORDER BY g DESC NULLS FIRST)

query
SELECT id, ntile(3) OVER (ORDER BY id) AS a, ntile(20) OVER (ORDER BY id) AS b, ntile(2) OVER (PARTITION BY g ORDER BY id DESC) AS c FROM t

-- windows of different orders in one query
query
SELECT id, sum(v) OVER (PARTITION BY g ORDER BY id) AS a, sum(v) OVER (PARTITION BY g ORDER BY id DESC) AS b, count(*) OVER (PARTITION BY d) AS c,
  max(x) OVER () AS e FROM t

-- a window over groups
query
SELECT g, sum(v) AS s, rank() OVER (ORDER BY sum(v) DESC NULLS LAST) AS r, sum(v) / sum(sum(v)) OVER () AS share FROM t GROUP BY g

-- the first rows of each partition
query
SELECT id, g FROM (SELECT id, g, row_number() OVER (PARTITION BY g ORDER BY v DESC NULLS LAST, id) AS r FROM t) WHERE r <= 2

-- MinSparkVersion: 4.2
query
SELECT id, g, v FROM t QUALIFY rank() OVER (PARTITION BY g ORDER BY v NULLS LAST) = 1

-- MinSparkVersion: 4.2
query
SELECT g, id FROM t QUALIFY count(*) OVER (PARTITION BY g) > 2 AND max(v) OVER (PARTITION BY g) = v

query expect_error(DISTINCT_WINDOW_FUNCTION_UNSUPPORTED)
SELECT id, count(DISTINCT g) OVER () AS n FROM t

query
SELECT id, collect_list(id) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS c FROM t

query tolerance=1e-9
SELECT id, stddev(v) OVER (PARTITION BY g) AS s, var_pop(x) OVER (ORDER BY id ROWS 3 PRECEDING) AS p FROM t

query
SELECT id, max_by(id, v) OVER (PARTITION BY g ORDER BY id) AS a, bool_or(v > 2) OVER (PARTITION BY g ORDER BY id) AS b FROM t

query
SELECT id, v - lag(v) OVER (PARTITION BY g ORDER BY id) AS step, id - first_value(id) OVER (PARTITION BY g ORDER BY id) AS since FROM t WHERE v IS NOT NULL

query
SELECT id, sum(CAST(v AS TINYINT)) OVER (ORDER BY id) AS a, avg(CAST(v AS DECIMAL(5, 2))) OVER (ORDER BY id ROWS 1 PRECEDING) AS b FROM t

-- a frame that leaves the type of its key
query expect_fallback(a RANGE frame with an offset over tinyint is not supported) context_declines(a RANGE frame with an offset over tinyint is not supported)
SELECT b, count(*) OVER (ORDER BY b RANGE BETWEEN CURRENT ROW AND 5 FOLLOWING) AS n FROM (SELECT CAST(id + 117 AS TINYINT) AS b FROM t)

query
SELECT id, sum(v) OVER (PARTITION BY g, d ORDER BY id) AS s FROM t ORDER BY id

query
SELECT row_number() OVER (ORDER BY id) AS r FROM t WHERE id > 100

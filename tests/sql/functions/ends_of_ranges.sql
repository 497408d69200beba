-- Functions of values at the ends of bigint, whose results are decimals or need more than 64 bits on the way.
-- Config: spark.sql.ansi.enabled=true,false

statement
CREATE TEMP VIEW t AS
SELECT i, CAST(v AS BIGINT) AS l, CAST(v AS DECIMAL(19, 0)) AS d, CAST(v AS DECIMAL(38, 0)) AS w, CAST(v AS DECIMAL(20, 0)) / 100 AS q,
  CAST(CAST(v AS DECIMAL(38, 0)) / 100 AS DECIMAL(20, 2)) AS s, CAST(v AS DOUBLE) * 1e289D AS x
FROM VALUES (1, '-9223372036854775808'), (2, '-9223372036854775807'), (3, '-9223372036854775805'), (4, '-5000000000000000000'),
  (5, '-1'), (6, '0'), (7, '1'), (8, '25'), (9, '4611686018427387904'), (10, '9223372036854775805'), (11, '9223372036854775807'),
  (12, NULL) AS v(i, v)

query
SELECT i, floor(l, -1) AS a, floor(l, -3) AS b, floor(l, -10) AS c, floor(l, -17) AS d, floor(l, -18) AS e FROM t

query
SELECT i, ceil(l, -1) AS a, ceil(l, -3) AS b, ceil(l, -10) AS c, ceil(l, -17) AS d, ceil(l, -18) AS e FROM t

query
SELECT i, ceil(l, -19) AS a, floor(l, -19) AS b, ceil(l, -20) AS c, floor(l, -37) AS d, floor(l, 0) AS e, ceil(l, 3) AS f FROM t

query
SELECT i, floor(d, -1) AS a, ceil(d, -2) AS b, floor(w, -1) AS c, ceil(w, -18) AS e, floor(q) AS f, ceil(q) AS g FROM t

query
SELECT i, floor(s) AS a, ceil(s) AS b, floor(s, 1) AS c, ceil(s, -1) AS d, round(s) AS e, bround(s, 1) AS f, round(s, -2) AS g FROM t

query
SELECT i, round(l) AS a, bround(l, 2) AS b, round(w, -1) AS c, bround(d, -5) AS d FROM t

query
SELECT i, -CAST(l AS DECIMAL(20, 0)) AS a, abs(CAST(l AS DECIMAL(20, 0))) AS b, CAST(l AS DECIMAL(38, 5)) AS c, s * 2 AS d, -s AS e FROM t

query
SELECT floor(-9223372036854775808L, -1) AS a, ceil(9223372036854775807L, -3) AS b

query
SELECT i, width_bucket(x, -1e308, 1e308, 10) AS a, width_bucket(x, 1e308, -1e308, 3) AS b, width_bucket(l, -5, 5, 9223372036854775806) AS c FROM t

query
SELECT sum(CAST(l AS DECIMAL(20, 0))) AS a, min(CAST(l AS DECIMAL(20, 0))) AS b, count(DISTINCT CAST(l AS DECIMAL(20, 0))) AS c FROM t

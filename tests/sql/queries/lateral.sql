-- LATERAL: subqueries and table functions in FROM that read the rows to their left.

statement
CREATE TEMP VIEW t AS SELECT id, id % 4 AS k, IF(id % 5 = 0, NULL, id * 1.5D) AS v, IF(id % 3 = 0, NULL, sequence(1, id % 3)) AS arr FROM RANGE(20)

statement
CREATE TEMP VIEW u AS SELECT id % 6 AS k, id AS n, IF(id % 4 = 0, NULL, 's' || id) AS s FROM RANGE(15)

-- computed columns
query
SELECT id, x, y FROM t, LATERAL (SELECT id + 1 AS x, v * 2 AS y)

query
SELECT id, x, y FROM t, LATERAL (SELECT id + 1 AS x) a, LATERAL (SELECT x * k AS y WHERE x > 3) b

-- a row of NULLs where there is none
query
SELECT id, y FROM t LEFT JOIN LATERAL (SELECT id * 10 AS y WHERE k = 1)

query
SELECT id, l.y FROM t LEFT JOIN LATERAL (SELECT v AS y) l ON l.y > 10

query
SELECT id, n, s FROM t JOIN LATERAL (SELECT n, s FROM u WHERE u.k = t.k AND n > t.id)

query
SELECT id, n, z FROM t LEFT JOIN LATERAL (SELECT n, coalesce(s, 'none') || t.id AS z FROM u WHERE u.k = t.k AND n < 5) l ON n <> id

-- aggregates, whose row is there for no rows, too
query
SELECT id, y, c, c2 FROM t, LATERAL (SELECT max(n) AS y, count(*) AS c, count(s) + 1 AS c2 FROM u WHERE u.k = t.k)

query
SELECT k, y FROM (SELECT DISTINCT k FROM t) a, LATERAL (SELECT max(id) AS y FROM t b WHERE b.k > a.k)

query
SELECT id, c FROM t LEFT JOIN LATERAL (SELECT count(*) AS c FROM u WHERE u.k = t.k) l ON c > 2

query
SELECT id, c, w FROM t, LATERAL (SELECT c, c * t.k AS w FROM (SELECT count(*) AS c FROM u WHERE u.k = t.k) WHERE c > 1)

query
SELECT id, s, c FROM t, LATERAL (SELECT s, count(*) AS c FROM u WHERE u.k = t.k GROUP BY s)

-- a query that reads nothing of the row
query
SELECT id, m FROM t JOIN LATERAL (SELECT max(n) AS m FROM u) WHERE id < 3

query
SELECT * FROM t a JOIN LATERAL (SELECT b.id AS other FROM t b JOIN u ON u.n = b.id WHERE b.k = a.k) x WHERE a.id < other

-- two rows around
query
SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u, LATERAL (SELECT u.n AS z WHERE u.k = 2) WHERE z = t.id)

-- table functions
query
SELECT id, x FROM t, LATERAL explode(arr) AS e(x)

-- Spark drops the rows without elements here
query context_declines(LEFT JOIN LATERAL of a table function)
SELECT id, p, x FROM t LEFT JOIN LATERAL posexplode(arr) AS e(p, x)

query
SELECT id, col FROM t JOIN LATERAL explode_outer(arr) WHERE id < 9

query
SELECT id, x FROM t JOIN LATERAL explode(arr) AS e(x) ON x <> id

query
SELECT x, key, value FROM explode(array(1, NULL, 3)) AS e(x), explode(map('a', 1, 'b', NULL))

query expect_error(UNRESOLVED_COLUMN.WITHOUT_SUGGESTION)
SELECT id, y FROM t, LATERAL (SELECT z AS y)

query expect_error(UNSUPPORTED_FEATURE.LATERAL_JOIN_USING)
SELECT * FROM t JOIN LATERAL (SELECT id) USING (id)

-- Recursive queries: rounds over the rows of the round before, until one gives none.
-- MinSparkVersion: 4.1

statement
CREATE TEMP VIEW t AS SELECT id, IF(id = 0, NULL, (id - 1) DIV 3) AS parent, id % 5 AS k, IF(id % 7 = 0, NULL, 'n' || id) AS name FROM RANGE(60)

-- a tree from its root down
query
WITH RECURSIVE r(id, level) AS (SELECT id, 0 FROM t WHERE parent IS NULL UNION ALL SELECT t.id, r.level + 1 FROM t JOIN r ON t.parent = r.id)
SELECT level, count(*), sum(id) FROM r GROUP BY level

-- from its leaves up, with rows that come several times and a text that grows
query
WITH RECURSIVE r AS (SELECT id, parent, name AS path FROM t WHERE id > 40
  UNION ALL SELECT t.id, t.parent, coalesce(t.name, '-') || '/' || r.path FROM r JOIN t ON t.id = r.parent)
SELECT id, path, count(*) AS n FROM r GROUP BY id, path

-- the first round is an aggregate, and each round looks at a table
query
WITH RECURSIVE r(n) AS (SELECT max(k) FROM t UNION ALL SELECT n - 1 FROM r WHERE n > (SELECT min(k) FROM t))
SELECT r.n, count(*) FROM r JOIN t ON t.k = r.n GROUP BY r.n

-- no table at all
query
WITH RECURSIVE r AS (SELECT 1 AS n, 0L AS a, 1L AS b UNION ALL SELECT n + 1, b, a + b FROM r WHERE n < 50) SELECT n, a FROM r ORDER BY n

query
WITH RECURSIVE r(d) AS (SELECT DATE'2024-02-27' UNION ALL SELECT d + 1 FROM r WHERE d < DATE'2024-03-02') SELECT d, count(*) OVER () AS n FROM r

-- no row to begin with
query
WITH RECURSIVE r AS (SELECT id, parent FROM t WHERE id < 0 UNION ALL SELECT t.id, t.parent FROM t JOIN r ON t.parent = r.id) SELECT count(*), max(id) FROM r

-- a limit ends what would go on for ever, within so many rounds
query
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r LIMIT 5

query expect_error(RECURSION_LEVEL_LIMIT_EXCEEDED)
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n * 2 AS m FROM r LIMIT 150

query expect_error(RECURSION_LEVEL_LIMIT_EXCEEDED)
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r

-- one round more than there may be, of no rows
query
WITH RECURSIVE r(n) MAX RECURSION LEVEL 4 AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT n FROM r

query expect_error(RECURSION_LEVEL_LIMIT_EXCEEDED)
WITH RECURSIVE r(n) MAX RECURSION LEVEL 3 AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r

-- every row several times, as the rounds are read twice
query
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 6) SELECT a.n, b.n AS m FROM r a JOIN r b ON a.n < b.n

-- the last round on the left of an outer join, of a semi join and of an anti join
query
WITH RECURSIVE r(id, name) AS (SELECT 1L, 'x' UNION ALL SELECT r.id * 2, t.name FROM r LEFT JOIN t ON t.id = r.id + 13 WHERE r.id < 100) SELECT * FROM r

query
WITH RECURSIVE r(id) AS (SELECT id FROM t WHERE id > 50 UNION ALL SELECT id - 7 FROM r WHERE EXISTS (SELECT 1 FROM t WHERE t.id = r.id - 7) AND id - 7 NOT IN (SELECT k FROM t))
SELECT id, count(*) AS n FROM r GROUP BY id

-- rounds inside of rounds
query
WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a WHERE n < 4), b(m) AS (SELECT 10 UNION ALL SELECT b.m + a.n FROM b JOIN a ON a.n = b.m - 9) SELECT m FROM b

-- tables of WITH RECURSIVE that do not recur
query
WITH RECURSIVE x AS (SELECT id, k FROM t WHERE k = 1), r(n) AS (SELECT 0L UNION ALL SELECT n + 1 FROM r WHERE n < (SELECT count(*) FROM x)) SELECT x.id, r.n FROM x JOIN r ON r.n = x.id

query expect_error(UNION_NOT_SUPPORTED_IN_RECURSIVE_CTE)
WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r

query expect_error(INVALID_RECURSIVE_CTE)
WITH RECURSIVE r(n) AS (SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r

query
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT a.n + 1 FROM r a JOIN r b ON a.n = b.n WHERE a.n < 3) SELECT * FROM r

query expect_error(INVALID_RECURSIVE_REFERENCE.PLACE)
WITH RECURSIVE r(n) AS (SELECT 1L UNION ALL SELECT count(*) FROM r) SELECT * FROM r

query expect_error(INVALID_RECURSIVE_REFERENCE.PLACE)
WITH RECURSIVE r(id) AS (SELECT 1L UNION ALL SELECT t.id FROM t LEFT JOIN r ON r.id = t.id) SELECT * FROM r

-- a step that falls back to Spark keeps all rounds there
query expect_fallback(random samples are not supported)
WITH RECURSIVE r(id, level) AS (SELECT max(id), 0 FROM t WHERE id < 2 UNION ALL SELECT s.id, r.level + 1 FROM (SELECT * FROM t TABLESAMPLE (100 PERCENT)) s JOIN r ON s.parent = r.id)
SELECT level, count(*) AS n, sum(id) FROM r GROUP BY level

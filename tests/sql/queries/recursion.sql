-- Recursive queries: Spark runs their rounds, the engine what is above, below and inside of them.
-- MinSparkVersion: 4.1

statement
CREATE TEMP VIEW t AS SELECT id, IF(id = 0, NULL, (id - 1) DIV 3) AS parent, id % 5 AS k FROM RANGE(60)

query expect_fallback(the rounds of a recursive query) context_declines(WITH RECURSIVE)
WITH RECURSIVE r(id, level) AS (SELECT id, 0 FROM t WHERE parent IS NULL UNION ALL SELECT t.id, r.level + 1 FROM t JOIN r ON t.parent = r.id)
SELECT level, count(*), sum(id) FROM r GROUP BY level

query expect_fallback(the rounds of a recursive query) context_declines(WITH RECURSIVE)
WITH RECURSIVE r(n) AS (SELECT max(k) FROM t UNION ALL SELECT n - 1 FROM r WHERE n > (SELECT min(k) FROM t))
SELECT r.n, count(*) FROM r JOIN t ON t.k = r.n GROUP BY r.n

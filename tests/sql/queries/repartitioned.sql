-- Rows that are distributed anew where nobody sees it: below an aggregate, a join, a window, a sort.
-- Tables: typed_rows, pairs

query
SELECT name, count(*), max(id) FROM (SELECT /*+ REPARTITION(3) */ * FROM t WHERE id > 1) GROUP BY name

query
SELECT name, sum(big) FROM (SELECT /*+ REPARTITION(3, id) */ id, name, big FROM t) WHERE id < 4 GROUP BY name

query
SELECT count(*), min(id) FROM (SELECT /*+ REBALANCE */ id FROM t)

query
SELECT count(DISTINCT name) FROM (SELECT /*+ COALESCE(1) */ name FROM t UNION ALL SELECT /*+ REPARTITION(2) */ name FROM t)

query
SELECT a.id, b.name FROM (SELECT /*+ REPARTITION(3, id) */ id FROM t) a JOIN (SELECT /*+ REPARTITION(2) */ id, name FROM t) b ON a.id = b.id

query
SELECT id, row_number() OVER (PARTITION BY name ORDER BY id) AS n FROM (SELECT /*+ REPARTITION_BY_RANGE(2, id) */ id, name FROM t)

query
SELECT id, name FROM (SELECT /*+ REPARTITION(3) */ id, name FROM t) ORDER BY id, name

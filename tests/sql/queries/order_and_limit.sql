-- ORDER BY of every type and direction, LIMIT and OFFSET.

statement
CREATE TEMP VIEW t AS
SELECT * FROM VALUES (1, 'b', 2.5D, DATE'2020-01-02', true, 1.10BD), (2, 'B', DOUBLE('NaN'), DATE'1999-01-01', false, -1.10BD), (3, NULL, -0.0D, NULL, NULL, NULL),
  (4, 'ä', 0.0D, DATE'2020-01-02', true, 0.00BD), (5, '', DOUBLE('-infinity'), DATE'2020-01-01', false, 99.99BD), (6, 'a', NULL, NULL, NULL, 1.10BD) AS t(id, s, d, day, o, m)

query
SELECT id FROM t ORDER BY s, id

query
SELECT id FROM t ORDER BY s DESC NULLS FIRST, id

query
SELECT id FROM t ORDER BY d, id

query
SELECT id FROM t ORDER BY d DESC NULLS LAST, id DESC

query
SELECT id FROM t ORDER BY day DESC, o, id

query
SELECT id FROM t ORDER BY m NULLS LAST, id

query
SELECT id, s FROM t ORDER BY length(s), upper(s), id

query
SELECT id AS x FROM t ORDER BY x DESC LIMIT 3

query
SELECT id FROM t ORDER BY -id LIMIT 2 OFFSET 1

query
SELECT id FROM t ORDER BY id OFFSET 4

query
SELECT id FROM t ORDER BY id LIMIT 100 OFFSET 100

query
SELECT id FROM t ORDER BY id LIMIT 0

query
SELECT s FROM t WHERE id > 3 ORDER BY id

query
SELECT o, count(*) AS n FROM t GROUP BY o ORDER BY n DESC, o NULLS FIRST LIMIT 2

query
SELECT DISTINCT day FROM t ORDER BY day NULLS LAST

query
SELECT * FROM (SELECT id FROM t ORDER BY m DESC NULLS LAST, id LIMIT 3) ORDER BY id

query
SELECT count(*) FROM (SELECT id FROM t LIMIT 4)

query
SELECT id, CASE WHEN o THEN 1 ELSE 0 END AS c FROM t ORDER BY c, id

query
SELECT id FROM t ORDER BY 1 DESC

query
SELECT id, s FROM t ORDER BY ALL DESC

query
SELECT id FROM t ORDER BY struct(o, day), id

query
SELECT sum(id) FROM (SELECT id FROM t ORDER BY id LIMIT 3)

query
SELECT id FROM t ORDER BY id LIMIT 1 + 1

-- only an int is a position
query
SELECT count(*) FROM RANGE(3) GROUP BY 5L

query expect_error(MISSING_AGGREGATION)
SELECT id AS k, count(*) FROM RANGE(3) GROUP BY 1L

query
SELECT DISTINCT id % 1 AS k FROM RANGE(3) ORDER BY k, 9L, 9S

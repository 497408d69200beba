-- Keys that are zeros: Spark shows 0.0 for a group of 0.0 and -0.0 and the values of rows as they are, whichever comes first.

statement files=1
CREATE TEMP VIEW t AS
SELECT i, CAST(f AS FLOAT) AS f, d, array(d, 1.0D) AS a, named_struct('d', d) AS s FROM VALUES
  (1, '-0.0', -0.0D), (2, '0.0', 0.0D), (3, '-0.0', -0.0D), (4, '1.5', 1.5D), (5, 'NaN', CAST('NaN' AS DOUBLE)), (6, NULL, NULL) AS v(i, f, d)

statement files=1
CREATE TEMP VIEW u AS
SELECT * FROM VALUES (0.0D, 'zero'), (-0.0D, 'minus'), (1.5D, 'one') AS v(d, n)

query
SELECT d, f, count(*) AS c FROM t GROUP BY d, f

query
SELECT a, s, count(*) AS c FROM t GROUP BY a, s

query
SELECT d, grouping_id() AS g, count(*) AS c FROM t GROUP BY ROLLUP (d)

query
SELECT DISTINCT d, f FROM t

query
SELECT d FROM t UNION SELECT d FROM u

query
SELECT d FROM t INTERSECT SELECT d FROM u

query
SELECT d FROM t EXCEPT SELECT d FROM u WHERE d > 1

query
SELECT d FROM t WHERE d < 1 INTERSECT ALL SELECT d FROM u

query
SELECT d FROM t WHERE d < 1 EXCEPT ALL SELECT d FROM u WHERE n = 'zero'

query
SELECT i, d, f, count(*) OVER (PARTITION BY d, f) AS c FROM t

query
SELECT i, d, n FROM t JOIN u USING (d)

query
SELECT i, d, n FROM t LEFT JOIN u USING (d)

query
SELECT i, d, n FROM t FULL JOIN u USING (d)

query
SELECT i, t.d AS x, u.d AS y, n FROM t JOIN u ON t.d = u.d

query
SELECT * FROM (SELECT d, i % 2 AS o, i FROM t) PIVOT (count(i) FOR o IN (0 AS even, 1 AS odd))

query
SELECT sort_array(collect_set(d)) AS a FROM t WHERE d < 1

query
SELECT count(DISTINCT d) AS c, count(DISTINCT a) AS e, approx_count_distinct(d) AS n, sum(DISTINCT d) AS s FROM t

query
SELECT d, max(i) AS m, count(DISTINCT f) AS c, count(DISTINCT i) AS e FROM t GROUP BY d

query
SELECT min(d) AS a, max(d) AS b, first(d) AS c, max_by(d, i) AS e FROM t WHERE d < 1

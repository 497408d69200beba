-- PIVOT, UNPIVOT and TABLESAMPLE.

statement
CREATE TEMP VIEW t AS SELECT id % 3 AS g, IF(id % 4 = 0, NULL, id % 4) AS k, IF(id % 5 = 0, NULL, 's' || id % 2) AS s, id * 1.5D AS v,
  CAST(id AS DECIMAL(10, 2)) AS m, DATE'2024-01-01' + CAST(id AS INT) AS d FROM RANGE(40)

statement
CREATE TEMP VIEW w AS SELECT id, IF(id % 3 = 0, NULL, CAST(id AS INT)) AS a, IF(id % 4 = 0, NULL, id * 10L) AS b, 's' || id AS x, IF(id = 2, NULL, 't') AS y FROM RANGE(12)

query
SELECT * FROM (SELECT g, k, v FROM t) PIVOT (sum(v) FOR k IN (1, 2, 3 AS three, 9))

-- a count is NULL, not 0, where a group has no row of the value
query
SELECT * FROM (SELECT g, k, v FROM t WHERE g <> 1 OR k = 2) PIVOT (count(*) AS n, sum(v) + 1 AS x, max(v) FOR k IN (1, 2, NULL AS none))

-- a count is 0 beside aggregates of other types
query
SELECT * FROM (SELECT g, k, s, d FROM t WHERE g <> 1 OR k = 2) PIVOT (count(*) AS n, max(s) AS x, min(d) FOR k IN (1, 2, NULL))

query
SELECT * FROM (SELECT g, s, m FROM t) PIVOT (avg(m) FILTER (WHERE m > 4) AS a, count(DISTINCT m) AS c FOR s IN ('s0', 's1' AS one))

query expect_fallback(cannot be read from text)
SELECT * FROM (SELECT g, k, s, v FROM t) PIVOT (max(v) FOR (k, s) IN ((1, 's1') AS a, (2, 's0') AS b, (3, NULL) AS c))

-- no groups, and values of other types than the column's
query
SELECT * FROM (SELECT k, v FROM t) PIVOT (sum(v) FOR k IN (1, '2', 3.0))

query
SELECT * FROM (SELECT g, d, m FROM t) PIVOT (first(m) FOR d IN (DATE'2024-01-05', DATE'2024-01-09' AS ninth))

-- equal values
-- MinSparkVersion: 4.3
query
SELECT * FROM (SELECT g, k, v FROM t) PIVOT (sum(v) FOR k IN (1 AS a, 1 AS b))

query
SELECT p.g, x.g AS h, `1` FROM (SELECT g, k, v FROM t) AS p PIVOT (sum(v) FOR k IN (1)) JOIN (SELECT DISTINCT g FROM t) x ON p.g = x.g

-- MinSparkVersion: 4.2
query
SELECT p.* FROM (SELECT g, k, v FROM t) PIVOT (sum(v) FOR k IN (1, 2)) p LEFT JOIN w ON p.g = w.id

query expect_error(NON_LITERAL_PIVOT_VALUES)
SELECT * FROM (SELECT g, k, v FROM t) PIVOT (sum(v) FOR k IN (g))

-- unpivot
query
SELECT * FROM w UNPIVOT (val FOR name IN (a, b AS bb))

query
SELECT id, name, val FROM w UNPIVOT INCLUDE NULLS (val FOR name IN (a, b)) AS u WHERE u.id < 5

-- names as they are written here
-- MinSparkVersion: 4.3
query
SELECT id, name, p, q FROM w UNPIVOT ((p, q) FOR name IN ((A, w.X), (b, Y)))

-- MinSparkVersion: 4.3
query
SELECT * FROM w UNPIVOT ((num, txt) FOR name IN ((a, x) AS ax, (b, y)))

query
SELECT * FROM (SELECT id, x, y FROM w) UNPIVOT EXCLUDE NULLS (val FOR name IN (x, y))

query expect_error(UNPIVOT_VALUE_DATA_TYPE_MISMATCH)
SELECT * FROM w UNPIVOT (val FOR name IN (a, x))

-- samples that are no random ones
query
SELECT count(*) FROM t TABLESAMPLE (7 ROWS) AS x

query expect_fallback(random samples are not supported)
SELECT g, count(*) FROM t TABLESAMPLE (100 PERCENT) GROUP BY g

query expect_fallback(random samples are not supported) context_declines(draws at random)
SELECT count(*) < 41 FROM t TABLESAMPLE (50 PERCENT) REPEATABLE (3)

-- any_value may return the NULL that stands for a row of another pivot value
query context_declines(any_value in PIVOT is only supported)
SELECT * FROM (SELECT 1 AS g, 'a' AS s) PIVOT (any_value(s) FOR g IN (1, 2))

query
SELECT * FROM VALUES (1, 'a'), (2, 'b') t(q, s) PIVOT (any_value(s) IGNORE NULLS FOR q IN (1, 2))

query
SELECT * FROM VALUES (1, 10), (2, 20) t(q, s) PIVOT (any_value(s) FOR q IN (1, 2))

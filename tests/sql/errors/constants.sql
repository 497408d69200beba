-- Constants that raise: Spark evaluates them while it optimizes a query, whether a row gets to them or not.

statement
CREATE TEMP VIEW t AS SELECT * FROM VALUES (1, 0.5D, true), (2, NULL, NULL) AS t(k, x, b)

-- behind a NULL
query expect_error(INVALID_ARRAY_INDEX)
SELECT floor(x) * array_remove(array(1), 1)[1] FROM t WHERE k = 2

-- of no rows
query expect_error(DIVIDE_BY_ZERO)
SELECT 1 / 0 FROM t WHERE k > 100

query expect_error(DIVIDE_BY_ZERO)
SELECT k FROM t WHERE k > 100 AND k > 1 / 0

query expect_error(DIVIDE_BY_ZERO)
SELECT sum(x + 1 / 0) FROM t WHERE k > 100

query expect_error(DIVIDE_BY_ZERO)
SELECT transform(array(k), e -> e + 1 / 0) FROM t WHERE k > 100

query expect_error(CAST_INVALID_INPUT)
SELECT k FROM t WHERE k > 100 ORDER BY x + CAST('a' AS INT)

query expect_error(DIVIDE_BY_ZERO)
SELECT elt(k, 1 / 0, 2) AS e FROM t WHERE k > 100

-- no constants for Spark: higher-order functions, whatever they are of, and some others
query
SELECT exists(array(1, 2), e -> 1 / (e - 1) > k) AS a, transform(array(0), e -> 1 / e)[0] AS b, elt(3, 'a', 'b') AS c FROM t WHERE k > 100

-- MinSparkVersion: 4.0
query
SELECT to_json(map_concat(map('a', 1), map('a', 2))) AS a FROM t WHERE k > 100

query
SELECT count(*) AS n FROM t GROUP BY transform(array(0), e -> e + 1)[0]

-- no constant, as it is there to raise where a row gets to it
query
SELECT raise_error('x') AS a, assert_true(false) AS b FROM t WHERE k > 100

-- keys that are never evaluated: Spark 3.5 evaluates those of windows
-- MinSparkVersion: 4.0
query
SELECT k, count(*) AS n, sum(k) OVER (PARTITION BY k, 1 / 0) AS s FROM t GROUP BY k, 1 / 0, CAST('a' AS INT)

query
SELECT count(*) AS n FROM t GROUP BY 1 / 0

-- MinSparkVersion: 4.0
query
SELECT k, row_number() OVER (PARTITION BY 1 / 0 ORDER BY k) AS r FROM t

-- not inside of a condition
query
SELECT CASE WHEN k > 100 THEN 1 / 0 END AS a, coalesce(k, 1 / 0) AS b, nanvl(x, 1 / 0) AS c, if(k > 100, 1 / 0, 2) AS d FROM t

query
SELECT CASE WHEN k > 1 / 0 THEN 1 ELSE 2 END AS a FROM t WHERE k > 100

-- not what nobody reads
query
SELECT k FROM (SELECT k, 1 / 0 AS y FROM t)

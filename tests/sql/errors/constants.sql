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

-- of nested types, and behind a NULL that keeps rows from others
query expect_error(_LEGACY_ERROR_TEMP_2128)
SELECT map_concat(CAST(NULL AS MAP<STRING, INT>), map_from_arrays(array('b', 'a'), array_remove(array(1), 1))) FROM t WHERE k > 100

query expect_error(DIVIDE_BY_ZERO)
SELECT aggregate(CAST(NULL AS ARRAY<INT>), array(1 / 0)[0], (a, e) -> a + e) FROM t WHERE k > 100

-- the entries of a map written in place are counted, not looked at
-- MinSparkVersion: 4.0
query
SELECT size(map(k, 1, k, 2)) AS n, cardinality(map(CAST(NULL AS INT), k)) AS c FROM t

query expect_error(DIVIDE_BY_ZERO)
SELECT size(map(k, 1 / (k - 1))) FROM t

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

-- not behind an argument that decides the value of a constant
query
SELECT nanvl(1.0D, CAST('x' AS DOUBLE)) AS a, nullif(CAST(NULL AS INT), 1 / 0) AS b, CAST(NULL AS DOUBLE) + 1 / 0 AS c FROM t

query expect_error(CAST_INVALID_INPUT)
SELECT nanvl(CAST('NaN' AS DOUBLE), CAST('x' AS DOUBLE)) AS a FROM t

-- Spark gathers the constants of sums and products of whole numbers, which decides what overflows.

statement files=1
CREATE TEMP VIEW t AS
SELECT * FROM VALUES (2147483647), (NULL) AS t(i)

-- MinSparkVersion: 4.0
query
SELECT try_add(1, i + i) AS x FROM t

-- MinSparkVersion: 4.0
query
SELECT try_multiply(i, 2 * i) AS x FROM t

query expect_error(ARITHMETIC_OVERFLOW)
SELECT 1 + try_add(i, 1) AS x FROM t

query
SELECT i + 1 + (-1) AS x FROM t

query
SELECT -1 + i + 1 AS x FROM t

query
SELECT (-1 + i) + (i DIV i) AS x FROM t

query
SELECT 0 * (i * 2) AS x FROM t

query expect_error(ARITHMETIC_OVERFLOW)
SELECT 1 * i * i AS x FROM t

query expect_error(ARITHMETIC_OVERFLOW)
SELECT i + 2147483647 + 1 AS x FROM t

query expect_error(ARITHMETIC_OVERFLOW)
SELECT try_add(2147483647 + 1, i) AS x FROM t

query expect_error(ARITHMETIC_OVERFLOW)
SELECT try_add(2147483647, i) + 1 AS x FROM t

query
SELECT try_add(i + 2147483647, 1) AS x FROM t

query
SELECT try_multiply(2147483647 * i, 2) AS x FROM t

query
SELECT try_add(1, try_multiply(i, 2)) + 1 AS x FROM t

query
SELECT try_add(1, CAST(i AS BIGINT) + i) AS x FROM t

query
SELECT transform(array(i), e -> e + 1 + (-1)) AS x FROM t

query
SELECT sum(i + 1 + (-1)) AS x FROM t

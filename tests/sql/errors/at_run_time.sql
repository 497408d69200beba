-- Errors that data causes, wherever the expression stands, and rows that must not cause them.

statement
CREATE TEMP VIEW t AS
SELECT * FROM VALUES (1, 0, '12', 2147483647), (2, 5, 'x', 1), (3, NULL, NULL, NULL), (4, 2, '7', -2147483648) AS t(id, n, s, big)

query expect_error(DIVIDE_BY_ZERO)
SELECT id FROM t WHERE 10 / n > 1

query
SELECT id FROM t WHERE n <> 0 AND 10 / n > 1

query
SELECT id, CASE WHEN n = 0 THEN 0 ELSE 10 / n END AS x FROM t

query
SELECT id, if(n = 0, NULL, 10 % n) AS x, coalesce(n, 10 / n) AS y, nullif(n, 0) AS z FROM t

query expect_error(DIVIDE_BY_ZERO)
SELECT sum(10 / n) FROM t

query
SELECT sum(10 / n) FILTER (WHERE n <> 0) AS s FROM t

query expect_error(DIVIDE_BY_ZERO)
SELECT 10 / n AS x, count(*) FROM t GROUP BY 10 / n

query expect_error(DIVIDE_BY_ZERO)
SELECT id FROM t ORDER BY 10 / n

-- Spark removes the first sort, but does not see the second one below the union
query
SELECT count(*) AS c FROM (SELECT id FROM t ORDER BY 10 / n)

query expect_error(DIVIDE_BY_ZERO)
SELECT count(*) AS c FROM ((SELECT id FROM t ORDER BY 10 / n) UNION ALL SELECT id FROM t)

query expect_error(DIVIDE_BY_ZERO)
SELECT x.id FROM t x JOIN t y ON 10 / x.n = y.id

query expect_error(DIVIDE_BY_ZERO)
SELECT id, sum(10 / n) OVER (ORDER BY id) AS s FROM t

-- MinSparkVersion: 4.1
query expect_error(REMAINDER_BY_ZERO)
SELECT id % n FROM t

query expect_error(CAST_INVALID_INPUT)
SELECT id FROM t WHERE CAST(s AS INT) > 5

query
SELECT id FROM t WHERE s RLIKE '^[0-9]+$' AND CAST(s AS INT) > 5

query expect_error(CAST_INVALID_INPUT)
SELECT id FROM t WHERE s > 5

query expect_error(ARITHMETIC_OVERFLOW)
SELECT big + 1 FROM t

query expect_error(ARITHMETIC_OVERFLOW)
SELECT -big FROM t WHERE id = 4

query expect_error(ARITHMETIC_OVERFLOW)
SELECT abs(big) FROM t

query expect_error(ARITHMETIC_OVERFLOW)
SELECT big * 2 FROM t WHERE id = 1

query
SELECT big * 2L, big + 1L, try_add(big, 1), try_multiply(big, 2) FROM t

query expect_error(ARITHMETIC_OVERFLOW)
SELECT sum(big + 9223372036854775000) FROM t WHERE big > 0

query
SELECT sum(big), avg(big), sum(CAST(big AS BIGINT) * 2) FROM t

query expect_error(SCALAR_SUBQUERY_TOO_MANY_ROWS)
SELECT id, (SELECT n FROM t) AS x FROM t

query
SELECT id, (SELECT n FROM t WHERE id = 2) AS x, (SELECT n FROM t WHERE id > 9) AS y FROM t

query
SELECT id FROM t LIMIT 0

query
SELECT 10 / n FROM t WHERE false

query
SELECT count(*) FROM (SELECT 10 / n AS x FROM t)

query expect_error(DIVIDE_BY_ZERO)
SELECT id FROM t WHERE id IN (SELECT 10 / n FROM t)

query expect_error(DIVIDE_BY_ZERO)
SELECT 10 / n FROM t UNION SELECT 1

-- MinSparkVersion: 4.1
query
SELECT id, try_to_number(s, '99') FROM t

query
SELECT id, assert_true(id > 0) AS a FROM t

query expect_error(INVALID_FRACTION_OF_SECOND)
SELECT make_timestamp(2020, 1, 1, 0, 0, 60.5) FROM t

query expect_error(CAST_INVALID_INPUT)
SELECT to_date('2020-02-30')

query
SELECT substring(s, n, -1), repeat(s, -1), left(s, -1), lpad(s, -1, 'x') FROM t

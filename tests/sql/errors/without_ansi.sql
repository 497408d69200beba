-- Without ANSI, what would be an error is NULL or wraps around.
-- Config: spark.sql.ansi.enabled=false
-- Tables: odd_rows, two_hundred_rows

-- casts of garbage
query
SELECT CAST(s AS INT), CAST(s AS DATE), CAST(s AS DECIMAL(3, 1)), CAST(f AS INT), CAST(k * 100000 AS TINYINT), k / 0,
  k % 0, k + 2147483647 FROM t

-- decimals
query
SELECT CAST(m * 1000 AS DECIMAL(4, 2)), sum(m * 1e36BD) FROM t GROUP BY m

-- sums
query
SELECT sum(id * 9223372036854775807) FROM u

-- constants: a zero divisor decides the result, a zero dividend does not
query
SELECT 0 / 5 AS a, 0 % 5 AS b, pmod(0, 5) AS c, 0 DIV 5 AS d, 1 / 0 AS e, 5 % 0 AS f, CAST(NULL AS INT) / 0 AS g, 0 / CAST(NULL AS INT) AS h, 0.00 / 5 AS i

query
SELECT try_divide(0, 5) AS a, try_divide(1, 0) AS b, 0D / 2 AS c, try_add(0, 0) AS d

-- malformed patterns and missing groups are errors in every mode, but not for rows that a branch excludes
query expect_fallback(a pattern that is not a constant)
SELECT CASE WHEN k > 100000 THEN s LIKE concat('a\\bc', s) END AS a, CASE WHEN k > 100000 THEN s ILIKE concat('a\\bc', s) END AS b FROM t

query
SELECT CASE WHEN k > 100000 THEN regexp_extract(s, '([a-z])', 3) END AS c FROM t

query expect_error(INVALID_FORMAT.ESC_IN_THE_MIDDLE) expect_fallback(a pattern that is not a constant)
SELECT s LIKE concat('a\\bc', s) AS a FROM t

-- 38 nines, rounded to 34 digits, have 39 digits, which is an error in every mode, but not for rows of other branches
statement
CREATE TEMP VIEW nines AS
SELECT CAST(d AS DECIMAL(38, 0)) AS d, k
FROM VALUES ('99999999999999999999999999999999999999', 2), ('-99999999999999999999999999999999999999', 2), ('5', 1) AS v(d, k)

query
SELECT CASE WHEN k = 1 THEN -d END AS n, CASE WHEN k = 1 THEN abs(d) END AS a, transform(array(k), x -> if(x = 1, -d, 0))[0] AS t FROM nines

query expect_error(NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION)
SELECT -d AS n FROM nines

-- the smallest interval and the smallest integer have no counterpart: the first is an error in every mode, the second wraps around
statement
CREATE TEMP VIEW smallest AS
SELECT i, CAST(n AS INT) AS n, k FROM VALUES ('-178956970-8', '-2147483648', 2), ('1-0', '5', 1) AS v(i, n, k)

query context_declines(the type interval YEAR TO MONTH is not supported)
SELECT CASE WHEN k = 1 THEN -i END AS i, CASE WHEN k = 1 THEN abs(i) END AS a
FROM (SELECT k, CAST(i AS INTERVAL YEAR TO MONTH) AS i FROM smallest)

query
SELECT CASE WHEN k = 1 THEN -n END AS n, -n AS m, abs(n) AS b FROM smallest

query expect_error(INTERVAL_ARITHMETIC_OVERFLOW.WITHOUT_SUGGESTION) context_declines(the type interval YEAR TO MONTH is not supported)
SELECT -CAST(i AS INTERVAL YEAR TO MONTH) AS i FROM smallest

-- Overflow, division by zero and bad casts among rows of odd values.
-- Tables: odd_rows, two_hundred_rows

-- overflow
query expect_error(ARITHMETIC_OVERFLOW)
SELECT k + 2147483647 FROM t

-- division by zero
query expect_error(DIVIDE_BY_ZERO)
SELECT k / (k - k) FROM t WHERE k IS NOT NULL

-- a bad cast
query expect_error(CAST_INVALID_INPUT)
SELECT CAST(s AS INT) FROM t

-- decimals past 38 digits
-- MinSparkVersion: 4.0
query expect_error(NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION)
SELECT sum(m * 1e36BD) FROM t

-- short circuits
query
SELECT count(*) FROM u WHERE (k = 0 OR 10 / k > 1) AND CASE WHEN k = 0 THEN 1 ELSE 7 / k END > 0

-- bad casts beside NULL
query expect_error(CAST_INVALID_INPUT)
SELECT i / n, i div n, i % n, pmod(i, n), try_divide(i, n), n + i, substring('abc', n, i), replace(s, nullif(s, s), r)
  FROM (SELECT s, nullif(length(s), 1) n, CAST(s AS INT) i, CAST(CAST(s AS INT) AS STRING) r FROM t)

-- a bad cast beside the NULL of a dividend
query expect_error(CAST_INVALID_INPUT)
SELECT nullif(length(s), 1) / CAST(s AS INT) FROM t

-- rounded to 34 digits, 38 nines have 39 digits, which is an error, but not for rows of other branches
statement
CREATE TEMP VIEW nines AS
SELECT CAST(d AS DECIMAL(38, 0)) AS d, k
FROM VALUES ('99999999999999999999999999999999999999', 2), ('-99999999999999999999999999999999999999', 2), ('5', 1) AS v(d, k)

query
SELECT CASE WHEN k = 1 THEN -d END AS n, CASE WHEN k = 1 THEN abs(d) END AS a FROM nines

query expect_error(NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION)
SELECT -d AS n FROM nines

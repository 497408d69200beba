-- Windows over rows of odd values.
-- Tables: odd_rows

-- try beside ANSI
query context_declines(try_sum is not a window function)
SELECT try_add(k, 2147483647) a, k + 1 b, try_divide(k, 0) c, try_cast(s AS INT) d, try_sum(k) OVER () x FROM t

-- decimals past 38 digits in a window
-- MinSparkVersion: 4.0
query expect_error(NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION)
SELECT k, sum(m * 1e36BD) OVER () FROM t

-- floats ordered
query
SELECT k, rank() OVER (ORDER BY f DESC) r FROM t ORDER BY f DESC, k

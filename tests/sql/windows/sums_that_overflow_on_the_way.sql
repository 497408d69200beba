-- Sums over frames whose values leave the type on the way, but not always in total.

statement files=1
CREATE TEMP VIEW nines AS
SELECT * FROM VALUES (1, 99999999999999999999999999999999999999BD), (2, -99999999999999999999999999999999999999BD), (3, -7BD) AS v(i, x)

statement files=1
CREATE TEMP VIEW longs AS
SELECT * FROM VALUES (1, 9223372036854775807), (2, -1), (3, -5) AS v(i, x)

statement files=1
CREATE TEMP VIEW growing AS
SELECT * FROM VALUES (1, 9223372036854775807), (2, 1), (3, -5) AS v(i, x)

query expect_fallback(the order of additions decides) context_declines(try_sum is not a window function)
SELECT i, try_sum(x) OVER (ORDER BY i) AS s FROM nines ORDER BY i

query expect_fallback(the order of additions decides) context_declines(try_sum is not a window function)
SELECT i, try_sum(x) OVER (ORDER BY i ROWS 1 PRECEDING) AS s FROM nines ORDER BY i

query expect_fallback(the order of additions decides) context_declines(try_sum is not a window function)
SELECT i, try_sum(x) OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s FROM nines ORDER BY i

-- MinSparkVersion: 4.0
query expect_error(NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION) expect_fallback(the order of additions decides) context_declines(the order of additions decides)
SELECT i, avg(x) OVER (ORDER BY i) AS s FROM nines ORDER BY i

query expect_fallback(the order of additions decides) context_declines(try_sum is not a window function)
SELECT i, try_sum(x) OVER (ORDER BY i) AS s FROM growing ORDER BY i

query expect_fallback(the order of additions decides) context_declines(the order of additions decides)
SELECT i, sum(x) OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s FROM longs ORDER BY i

query expect_error(ARITHMETIC_OVERFLOW) expect_fallback(the order of additions decides) context_declines(the order of additions decides)
SELECT i, sum(x) OVER (ORDER BY i) AS s FROM growing ORDER BY i

-- Without ANSI a sum of a frame wraps around, and a decimal one is NULL.
-- Config: spark.sql.ansi.enabled=false

statement files=1
CREATE TEMP VIEW nines AS
SELECT * FROM VALUES (1, 99999999999999999999999999999999999999BD), (2, 5BD), (3, -99999999999999999999999999999999999999BD) AS v(i, x)

statement files=1
CREATE TEMP VIEW longs AS
SELECT * FROM VALUES (1, 9223372036854775807), (2, -1), (3, -5), (4, 9223372036854775807), (5, 9223372036854775807) AS v(i, x)

query expect_fallback(the order of additions decides) context_declines(try_sum is not a window function)
SELECT i, try_sum(x) OVER (ORDER BY i) AS s FROM nines ORDER BY i

query expect_fallback(the order of additions decides) context_declines(try_sum is not a window function)
SELECT i, try_sum(x) OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s FROM nines ORDER BY i

query
SELECT i, sum(x) OVER (ORDER BY i) AS s FROM longs ORDER BY i

query
SELECT i, sum(x) OVER (ORDER BY i ROWS 1 PRECEDING) AS s FROM longs ORDER BY i

query
SELECT i, sum(x) OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s FROM longs ORDER BY i

query
SELECT sum(x) AS s, avg(x) AS a FROM longs

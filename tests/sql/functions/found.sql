-- Answers that once differed from Spark's, as small as they got.

statement
CREATE TEMP VIEW t AS
SELECT id, id - 3 AS n, concat('a', id) AS s, IF(id = 3, NULL, CAST(id AS STRING)) AS digits FROM RANGE(7)

statement files=1
CREATE TEMP VIEW first_moment AS
SELECT '-290308-12-21 19:59:05.224192' AS s

-- whole seconds
query
SELECT n, unix_micros(timestamp_seconds(n)) AS t FROM t ORDER BY n

-- seconds with a fraction
query expect_fallback(argument 1 cannot be decimal(22,1)) context_declines(timestamp_seconds: argument 1 cannot be decimal(22,1))
SELECT n, unix_micros(timestamp_seconds(n + 0.5)) AS t FROM t ORDER BY n

query expect_fallback(argument 1 cannot be double) context_declines(timestamp_seconds: argument 1 cannot be double)
SELECT n, unix_micros(timestamp_seconds(n + 0.5D)) AS t FROM t ORDER BY n

query expect_fallback(argument 1 cannot be float) context_declines(timestamp_seconds: argument 1 cannot be float)
SELECT n, unix_micros(timestamp_seconds(CAST(n + 0.25 AS FLOAT))) AS t FROM t ORDER BY n

-- the lowest timestamp
query
SELECT unix_micros(try_cast(s AS TIMESTAMP)) AS a FROM first_moment

-- an interval of whole days cuts off the hours
query expect_fallback(a cast to interval day) context_declines(the type interval DAY)
SELECT id, CAST(INTERVAL '1' HOUR * id * 7 AS INTERVAL DAY) AS d FROM t

query expect_fallback(a cast to interval day) context_declines(the type interval DAY)
SELECT count(*) AS n FROM t GROUP BY CAST(INTERVAL '1' HOUR * id * 7 AS INTERVAL DAY)

query
SELECT id, CAST(INTERVAL '1' HOUR * id * 7 AS INTERVAL DAY TO SECOND) AS d FROM t

-- the group of a pattern that nothing matches
query
SELECT regexp_extract(digits, 'x', 1) AS a, regexp_extract(digits, '(x)', -2) AS b FROM t

query expect_error(INVALID_PARAMETER_VALUE.REGEX_GROUP_INDEX)
SELECT regexp_extract(digits, '2', 1) AS a FROM t

-- what NULL would be compared with is not computed
query
SELECT nullif(x, CAST(y AS INT)) AS a, nullif(x, y) AS b FROM VALUES (CAST(NULL AS INT), 'e'), (1, '1'), (2, '1') AS v(x, y)

query context_declines(the type interval DAY)
SELECT CAST(CAST(d - INTERVAL '3' HOUR AS TIMESTAMP) - TIMESTAMP'2020-01-01' AS INTERVAL DAY) AS x FROM VALUES (TIMESTAMP'2020-01-05') AS v(d)

-- Strings that may not match a pattern, which Spark 3.5's time parser may answer with an error.
-- Config: spark.sql.legacy.timeParserPolicy=EXCEPTION
-- Config: spark.sql.ansi.enabled=false

statement
CREATE TEMP VIEW t AS SELECT id, concat('2020-01-0', id + 1) AS s, TIMESTAMP'2020-01-01 00:00:00' AS ts FROM RANGE(5)

query expect_fallback(strings that may not match a pattern are not supported)
SELECT to_date(s, 'yyyy-MM-dd') AS d, count(*) FROM t GROUP BY 1

query expect_fallback(strings that may not match a pattern are not supported)
SELECT unix_timestamp(s, 'yyyy-MM-dd') AS d, count(*) FROM t GROUP BY 1

query
SELECT unix_timestamp(ts) AS a, date_format(ts, 'yyyy') AS b, to_date(s) AS c, count(*) FROM t GROUP BY 1, 2, 3

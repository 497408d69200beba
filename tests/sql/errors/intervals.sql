-- Intervals that are too long are errors in every mode; only what is asked to try gives NULL.
-- MinSparkVersion: 4.0
-- Config: spark.sql.ansi.enabled=true,false

statement
CREATE TEMP VIEW t AS SELECT CAST(id AS INT) AS id FROM RANGE(1, 4)

query expect_error(INTERVAL_ARITHMETIC_OVERFLOW.WITH_SUGGESTION)
SELECT i + i AS r FROM (SELECT make_dt_interval(106751991 - id) AS i FROM t)

query expect_error(INTERVAL_ARITHMETIC_OVERFLOW.WITH_SUGGESTION)
SELECT -i - i AS r FROM (SELECT make_dt_interval(106751991 - id) AS i FROM t)

query expect_error(INTERVAL_ARITHMETIC_OVERFLOW.WITH_SUGGESTION)
SELECT id FROM (SELECT id, make_dt_interval(106751991 - id) AS i FROM t) WHERE i + i > make_dt_interval(id) OR id = 7

query
SELECT id, if(id > 9, i + i, i) AS r FROM (SELECT id, make_dt_interval(106751991 - id) AS i FROM t)

query expect_fallback(that gives NULL) context_declines(that gives NULL)
SELECT try_add(i, i) AS r FROM (SELECT make_dt_interval(106751991 - id) AS i FROM t)

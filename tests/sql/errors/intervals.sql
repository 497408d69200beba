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

query expect_fallback(that returns NULL on overflow) context_declines(that returns NULL on overflow)
SELECT try_add(i, i) AS r FROM (SELECT make_dt_interval(106751991 - id) AS i FROM t)

-- the months of a date's interval, which is an error in every session
query expect_error(INTERVAL_ARITHMETIC_OVERFLOW.WITHOUT_SUGGESTION)
SELECT DATE'2021-03-28' + make_ym_interval(CAST(id + 2147483000 AS INT), 1) FROM range(3)

query
SELECT DATE'2021-03-28' + INTERVAL '3' MONTH * 1.5D a, TIMESTAMP'2021-03-28 01:30:00' - 2 * make_ym_interval(CAST(id AS INT), 3) b,
  DATE'2021-03-28' - (make_ym_interval(CAST(id AS INT), 3) + INTERVAL '2' MONTH) c FROM range(3)

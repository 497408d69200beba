-- The time parser of Spark 3.5: patterns print as ever, and a text that does not match one may be an error.
-- Config: spark.sql.legacy.timeParserPolicy=EXCEPTION,CORRECTED
-- Format: json, csv

statement
CREATE TEMP VIEW t AS
SELECT id, TIMESTAMP'2020-01-01 00:00:00' + make_dt_interval(CAST(id AS INT), 5, 6, 7.5) AS ts, date_add(DATE'2020-01-30', CAST(id AS INT)) AS day,
  date_format(date_add(DATE'2019-12-30', CAST(id AS INT)), 'dd/MM/yyyy') AS s FROM RANGE(20)

query
SELECT * FROM t

query
SELECT id, date_format(ts, 'yyyy-MM-dd HH:mm'), from_unixtime(id * 86400), unix_timestamp(ts), unix_timestamp(day) FROM t

query
SELECT id, to_date(s, 'dd/MM/yyyy'), to_timestamp(s, 'dd/MM/yyyy'), unix_timestamp(s, 'dd/MM/yyyy') FROM t

-- Patterns of names, of digits without zeros in front and of hours of half a day: what prints and what reads them.
-- Config: spark.sql.session.timeZone=UTC,America/New_York
-- Config: spark.sql.legacy.timeParserPolicy=CORRECTED

statement
CREATE TEMP VIEW t AS
SELECT id, TIMESTAMP'2019-12-29 23:58:59.123456' + make_dt_interval(CAST(id * 17 AS INT), CAST(id AS INT), 1, 0.9) AS ts,
  IF(id = 5, NULL, date_add(DATE'2019-12-29', CAST(id * 11 AS INT))) AS day FROM RANGE(60)

query
SELECT id, date_format(ts, 'EEE, d MMM yyyy HH:mm:ss') AS a, date_format(ts, 'EEEE dd MMMM yy') AS b, date_format(day, 'E') AS c, date_format(day, 'MMM') AS e FROM t

query
SELECT id, date_format(ts, 'h:mm a') AS a, date_format(ts, 'hh:mm:ss a') AS b, date_format(ts, 'K kk k H') AS c, date_format(ts, 'm s') AS e FROM t

query
SELECT id, date_format(ts, 'D') AS a, date_format(ts, 'DD') AS b, date_format(ts, 'DDD') AS c, date_format(ts, 'Q QQ QQQ QQQQ') AS e, date_format(day, 'y yyy') AS f FROM t

query
SELECT id, date_format(ts, 'S SS SSS SSSSS SSSSSSS SSSSSSSSS') AS a, date_format(ts, 'ssSSS') AS b, date_format(ts, "yyyyMMdd'T'HHmmssSSS") AS c FROM t

query
SELECT date_format(day, 'MMMM yyyy') AS month, count(*) AS n, min(day) AS first FROM t GROUP BY 1

query
SELECT id, from_unixtime(id * 123456, 'EEE d-M-yy h a') AS a, date_format(ts, 'd') || date_format(ts, '''day'' D') AS b FROM t

query
SELECT id, to_date(s, 'd-MMM-yyyy') AS a, to_timestamp(u, 'MM/dd/yyyy hh:mm:ss a') AS b, to_date(v, 'MMMM d, yyyy') AS c, to_date(w, 'MM/dd/yy') AS e, unix_timestamp(x, 'ddMMMyyyy h:m a') AS f
FROM (SELECT id, date_format(day, 'd-MMM-yyyy') AS s, date_format(ts, 'MM/dd/yyyy hh:mm:ss a') AS u, date_format(day, 'MMMM d, yyyy') AS v, date_format(day, 'MM/dd/yy') AS w,
  date_format(ts, 'ddMMMyyyy h:m a') AS x FROM t)

query
SELECT s, try_to_timestamp(s, 'dd-MMM-yyyy') AS a, try_to_timestamp(s, 'd MMMM yyyy') AS b, try_to_timestamp(s, 'yyyy-MM-dd hh:mm a') AS c, try_to_timestamp(s, 'dd/MM/yy') AS e
FROM VALUES ('01-jan-2020'), ('29-FEB-2021'), ('29-FEB-2020'), ('5-Mar-2020'), ('05-Sept-2020'), ('05-Xxx-2020'), ('5 may 2020'), ('05 May 2020'), ('5 JULY 2020'), ('5 Jul 2020'),
  ('2020-01-01 12:00 AM'), ('2020-01-01 12:00 pm'), ('2020-01-01 00:30 am'), ('2020-01-01 13:00 PM'), ('2020-01-01 01:00 xm'), ('2020-01-01 01:00'), ('01/02/99'), ('01/02/00'), ('31/02/20'), ('01/02/2020'),
  (''), (NULL), ('01-0an-2020') AS v(s)

query
SELECT s, to_date(s, 'dd-MMM-yyyy') AS a FROM VALUES ('01-jan-2020'), ('05-MAR-2020'), (NULL), ('31-Dec-1999') AS v(s)

query expect_error(CANNOT_PARSE_TIMESTAMP)
SELECT s, to_date(s, 'dd-MMM-yyyy') AS a FROM VALUES ('01-jan-2020'), ('05-Xyz-2020') AS v(s)

query expect_error(CANNOT_PARSE_TIMESTAMP)
SELECT s, to_timestamp(s, 'yyyy-MM-dd hh:mm a') AS a FROM VALUES ('2020-01-01 00:30 am') AS v(s)

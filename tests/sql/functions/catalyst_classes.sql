-- Functions whose Catalyst classes have a form of their own.

statement
CREATE TEMP VIEW t AS
SELECT * FROM VALUES
  ('2019/01/31', X'616263', 1, 1234.567D, DATE'2019-01-31', TIMESTAMP'1970-01-01 00:00:00', array(3L, 1L, NULL, 3L), array('x', NULL, 'y'), array(array(1L), array(2L, 3L))),
  ('a,b,c', X'', 2, -0.5D, DATE'2020-02-29', TIMESTAMP'2001-09-09 01:46:40', array(), array(), array()),
  (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  ('2020/02/29', X'00FF', 3, 2.5D, DATE'1969-12-31', TIMESTAMP'1969-12-31 23:59:59.999999', array(2L), array('z'), array(array(CAST(NULL AS BIGINT)))),
  ('YQ==', X'7878787878', 4, 1e6D, DATE'2021-06-01', TIMESTAMP'2020-09-13 12:26:40.123456', array(9L, 8L), array('x'), array(CAST(NULL AS ARRAY<BIGINT>)))
  AS t(s, b, i, x, day, ts, a, w, n)

-- MinSparkVersion: 4.1
query
SELECT try_to_timestamp(s, 'yyyy/MM/dd') AS a, try_to_date(s, 'yyyy/MM/dd') AS b FROM t

query
SELECT to_unix_timestamp(ts) AS a, unix_timestamp(day) AS b, make_timestamp(2020, i, 3, 4, 5, 6.25) AS c FROM t

query
SELECT timestampadd(MONTH, i, ts) AS a, timestampadd(HOUR, i, ts) AS b, date_add(day, i) AS c FROM t

query
SELECT timestampdiff(DAY, ts, timestamp'2020-01-01 00:00:00') AS a, datediff(MONTH, ts, timestamp'2020-01-01 00:00:00') AS b FROM t

query
SELECT from_utc_timestamp(ts, 'Asia/Tokyo') AS a, to_utc_timestamp(ts, 'Asia/Tokyo') AS b FROM t

-- MinSparkVersion: 4.0
query
SELECT dayname(day) AS a, monthname(day) AS b FROM t

query
SELECT split_part(s, ',', 2) AS a, split_part(s, '/', -1) AS b, soundex(s) AS c FROM t

query
SELECT base64(b) AS a, bin(i) AS b, format_number(x, 2) AS c FROM t

query
SELECT overlay(s, 'Z', 2) AS a, overlay(s placing 'Z' from 2 for 3) AS b FROM t

query
SELECT elt(2, s, 'other') AS a, nvl2(i, s, 'none') AS b, ifnull(s, 'none') AS c FROM t

query
SELECT sort_array(a) AS x, sort_array(a, false) AS y, array_max(a) AS z, array_min(a) AS u, array_distinct(a) AS v FROM t

query
SELECT concat(a, a) AS x, a || array(1L, i) AS y, reverse(a) AS z, concat(n, array(a)) AS u FROM t

query
SELECT array_union(a, array(1L, 7L)) AS x, array_except(a, array(3L)) AS y, array_intersect(a, array(3L, NULL)) AS z FROM t

query
SELECT arrays_overlap(a, array(3L)) AS x, array_position(a, 3) AS y, array_remove(a, 3) AS z FROM t

-- MinSparkVersion: 4.3
query
SELECT slice(a, 1, 2) AS x, flatten(n) AS y FROM t

query
SELECT array_join(w, '-') AS x, array_join(w, '-', '?') AS y, array_repeat(i, 2) AS z, cardinality(a) AS u FROM t

query
SELECT sequence(1, i) AS x, sequence(day, date_add(day, 3)) AS y FROM t

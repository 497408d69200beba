-- The same rows of many types from Parquet, ORC and JSON.
-- Format: parquet, orc, json

statement
CREATE TEMP VIEW t AS
SELECT id, IF(id % 5 = 0, NULL, id * 1000003 % 97) AS l, CAST(IF(id % 7 = 0, NULL, id - 20) AS INT) AS i, CAST(id % 100 AS TINYINT) AS b, id % 3 = 0 AS o,
  CAST(id * 1.25 AS DECIMAL(9, 2)) AS m, CAST(id * 123456789012345.678 AS DECIMAL(30, 3)) AS w, id / 3D AS d, CAST(id / 8 AS FLOAT) AS f,
  CASE id % 4 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN 'Äö"\\' ELSE concat('s', id % 9) END AS s, date_add(DATE'2020-01-30', CAST(id AS INT)) AS day,
  TIMESTAMP'2020-01-01 00:00:00' + make_dt_interval(CAST(id AS INT), 5, 6, 7.5) AS ts,
  IF(id % 6 = 0, NULL, array(CAST(id AS INT), NULL)) AS a, named_struct('x', IF(id % 2 = 0, NULL, id), 'y', concat('y', id % 3)) AS st FROM RANGE(40)

query
SELECT * FROM t

query
SELECT count(*), count(l), count(i), count(s), count(a) FROM t

query
SELECT s, sum(l), min(i), max(m), avg(w), max(day) FROM t GROUP BY s

query tolerance=1e-9
SELECT o, sum(d), max(f), sum(b), max(ts) FROM t GROUP BY o

query
SELECT id, st.y, a[0] FROM t WHERE l > 20 AND s <> '' AND st.x IS NOT NULL

query
SELECT id FROM t WHERE i IS NULL OR s IS NULL

query
SELECT id FROM t WHERE day BETWEEN DATE'2020-02-05' AND DATE'2020-02-20' AND m IN (7.50, 10.00, 12.50)

query
SELECT id FROM t WHERE ts > TIMESTAMP'2020-01-20 00:00:00' ORDER BY ts DESC LIMIT 5

query
SELECT st, count(*) FROM t GROUP BY st

query
SELECT e, count(*) FROM t LATERAL VIEW explode(a) AS e GROUP BY e

query
SELECT x.id, y.s FROM t x JOIN t y ON x.l = y.id AND x.st = y.st

query
SELECT id, row_number() OVER (PARTITION BY s ORDER BY w DESC) AS r FROM t

query
SELECT id, w, f, d FROM t WHERE w > 1e15 OR f < 1

query
SELECT DISTINCT o, b % 2 FROM t WHERE id >= 10

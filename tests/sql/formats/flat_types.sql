-- Columns that every format has.
-- Format: csv, json, orc, parquet

statement
CREATE TEMP VIEW t AS
SELECT id, IF(id % 5 = 0, NULL, id * 1000003 % 97) AS l, CAST(IF(id % 7 = 0, NULL, id - 20) AS INT) AS i, id % 3 = 0 AS o, CAST(id * 1.25 AS DECIMAL(9, 2)) AS m,
  IF(id % 11 = 0, DOUBLE('NaN'), id / 3D) AS d, CASE id % 4 WHEN 0 THEN NULL WHEN 1 THEN 'a,"b' WHEN 2 THEN 'Äö' ELSE concat('s', id % 9) END AS s,
  date_add(DATE'2020-01-30', CAST(id AS INT)) AS day, TIMESTAMP'2020-01-01 00:00:00' + make_dt_interval(CAST(id AS INT), 5, 6, 7.5) AS ts FROM RANGE(40)

query
SELECT * FROM t

query
SELECT s, count(*), sum(l), max(m), min(day), max(ts) FROM t GROUP BY s

query
SELECT id, d FROM t WHERE d > 10 ORDER BY id

query
SELECT count(*) FROM t WHERE o AND i IS NOT NULL AND s IS NULL

query
SELECT id FROM t WHERE s = 'a,"b' AND m > 5.5

query
SELECT year(day) AS y, month(day) AS m, hour(ts) AS h, count(*) FROM t GROUP BY 1, 2, 3

query
SELECT x.id, y.id FROM t x LEFT JOIN t y ON x.l = y.i

query
SELECT max(id) FROM t WHERE ts < TIMESTAMP'2020-01-11 00:00:00'

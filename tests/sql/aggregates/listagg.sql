-- listagg: its order, its delimiter, DISTINCT, FILTER, no rows, windows.

statement
CREATE TEMP VIEW t AS
SELECT id, id % 3 AS k, IF(id % 11 = 0, NULL, concat('s', id % 5)) AS s, CAST(id AS STRING) AS str,
  CAST(id * 1.5 AS DECIMAL(7, 2)) AS m, IF(id % 7 = 3, NULL, IF(id % 7 = 4, DOUBLE('NaN'), id / 4D)) AS x, id % 2 = 0 AS b
  FROM RANGE(40)

statement files=1
CREATE TEMP VIEW one_file AS
SELECT * FROM VALUES (1, 'a', X'61'), (2, NULL, NULL), (1, 'ü', X''), (2, '', X'00'), (1, 'a', X'62'), (3, NULL, NULL)
  AS one_file(k, s, bin)

-- MinSparkVersion: 4.0
query context_declines(WITHIN GROUP is not supported)
SELECT k, listagg(s) WITHIN GROUP (ORDER BY s), listagg(s, '-') WITHIN GROUP (ORDER BY s DESC) FROM t GROUP BY k

-- the order of another column
-- MinSparkVersion: 4.0
query context_declines(WITHIN GROUP is not supported)
SELECT k, listagg(s, ',') WITHIN GROUP (ORDER BY id DESC), count(DISTINCT s) FROM t GROUP BY k

-- several keys, NULL and NaN among them
-- MinSparkVersion: 4.0
query context_declines(WITHIN GROUP is not supported)
SELECT k, listagg(str, ',') WITHIN GROUP (ORDER BY s DESC, x ASC NULLS LAST, id) AS a,
  listagg(str, ',') WITHIN GROUP (ORDER BY x DESC NULLS FIRST, m DESC) AS c FROM t GROUP BY k

-- MinSparkVersion: 4.0
query context_declines(WITHIN GROUP is not supported)
SELECT k, listagg(DISTINCT s, ', ') WITHIN GROUP (ORDER BY s) FROM t GROUP BY k

-- MinSparkVersion: 4.0
query context_declines(WITHIN GROUP is not supported)
SELECT listagg(str, ',') WITHIN GROUP (ORDER BY m) FILTER (WHERE b), listagg(id, ';') WITHIN GROUP (ORDER BY id) FROM t

-- one group a row
-- MinSparkVersion: 4.0
query context_declines(WITHIN GROUP is not supported)
SELECT id, listagg(s, ',') WITHIN GROUP (ORDER BY x) FROM t GROUP BY id

-- sorted rows, which have another order within the group
-- MinSparkVersion: 4.0
query context_declines(WITHIN GROUP is not supported)
SELECT listagg(str) WITHIN GROUP (ORDER BY id) FROM (SELECT * FROM t ORDER BY id DESC LIMIT 10)

-- no rows
-- MinSparkVersion: 4.0
query context_declines(WITHIN GROUP is not supported)
SELECT listagg(str, ',') WITHIN GROUP (ORDER BY m), listagg(str) FROM t WHERE id < 0

-- no rows in any group
-- MinSparkVersion: 4.0
query
SELECT k, listagg(str, ',') FROM t WHERE id < 0 GROUP BY k

-- in the order of the rows
-- MinSparkVersion: 4.0
query
SELECT k, listagg(s), listagg(s, '|'), listagg(bin), listagg(bin, X'2c2c'), listagg(k, NULL) FROM one_file GROUP BY k

-- MinSparkVersion: 4.0
query
SELECT string_agg(s, ', ') AS a, listagg(s) AS c FROM one_file

-- over a window
-- MinSparkVersion: 4.2
query
SELECT id, listagg(s, ',') OVER (PARTITION BY k ORDER BY id) AS a,
  listagg(s, ',') FILTER (WHERE b) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS c FROM t

-- lists over a window
query
SELECT id, collect_list(s) OVER (PARTITION BY k ORDER BY id) AS a,
  collect_list(x) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS c FROM t

-- a window without an order
query expect_fallback(CollectList over a window without an order)
SELECT id, size(collect_list(s) OVER (PARTITION BY k)) AS n FROM t

-- MinSparkVersion: 4.0
query expect_error(DATATYPE_MISMATCH.NON_FOLDABLE_INPUT)
SELECT listagg(s, str) FROM t

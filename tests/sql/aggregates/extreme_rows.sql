-- max_by and min_by with a number: equal rows, NULLs, NaN and zeros, all types of keys.
-- MinSparkVersion: 4.2

statement files=1
CREATE TEMP VIEW r AS SELECT * FROM VALUES
  (1, 'a', 5, 1.5D, DATE'2020-01-01', 1.10), (1, 'b', 5, CAST('NaN' AS DOUBLE), DATE'2020-01-02', 2.10),
  (1, 'c', 7, -0.0D, NULL, 0.10), (1, NULL, 7, 0.0D, DATE'2020-01-01', NULL), (1, 'e', 3, NULL, DATE'2019-01-01', 1.10),
  (1, 'f', 5, CAST('inf' AS DOUBLE), DATE'2020-01-02', 1.10), (2, 'g', NULL, NULL, NULL, NULL), (2, 'h', NULL, NULL, NULL, NULL),
  (3, 'i', 1, 1D, DATE'2020-01-01', 1.10), (3, 'j', 1, 1D, DATE'2020-01-01', 1.10), (3, 'k', 2, 1D, DATE'2020-01-01', 1.10),
  (3, 'l', 2, 2D, DATE'2020-01-01', 2.10), (3, 'm', 1, 2D, DATE'2020-01-01', 3.10), (3, 'n', 3, 2D, DATE'2020-01-01', 1.10)
AS r(g, x, y, d, day, m)

statement files=1
CREATE TEMP VIEW many AS SELECT id FROM range(0, 5000, 1, 1)

query
SELECT g, max_by(x, y, 1) AS a, max_by(x, y, 2) AS b, max_by(x, y, 3) AS c, max_by(x, y, 4) AS e, min_by(x, y, 1) AS f, min_by(x, y, 2) AS h,
  min_by(x, y, 3) AS i, min_by(x, y, 4) AS j, max_by(x, y, 100000) AS k FROM r GROUP BY g

query
SELECT g, max_by(x, d, 3) AS a, min_by(x, d, 3) AS b, max_by(y, day, 2) AS c, min_by(d, m, 2) AS e, max_by(m, x, 2) AS f,
  max_by(struct(x, y), struct(y, x), 2) AS h, min_by(array(y), array(y, g), 2) AS i FROM r GROUP BY g

query
SELECT max_by(x, y, 2) AS a, min_by(x, y, 3), max_by(x, y, 2 + 1) FILTER (WHERE g = 3) AS b FROM r

query
SELECT max_by(x, y, 2) AS a FROM r WHERE g > 5

statement
CREATE TEMP VIEW different AS SELECT id, id % 4 AS g, (id * 7919) % 10007 AS y FROM range(0, 10000, 1, 1)

-- many rows of several files, none of them equal
query
SELECT g, max_by(id, y, 10) AS a, min_by(id, y, 1000) AS b FROM different GROUP BY g

-- many rows, most of them equal
query
SELECT id % 3 AS g, max_by(id, id % 7, 5) AS a, min_by(id, id % 5, 4) AS b, max_by(id, pmod(hash(id), 50), 20) AS c
FROM many GROUP BY 1

query
SELECT g, b[0] AS first, size(b) AS n FROM (SELECT g, min_by(x, y, 2) AS b FROM r GROUP BY g) WHERE b IS NOT NULL

query expect_fallback(over a window) context_declines(over a window)
SELECT x, max_by(x, y, 2) OVER (PARTITION BY g ORDER BY x) AS a FROM r

query expect_fallback(of sorted rows)
SELECT max_by(x, y, 1) AS a FROM (SELECT * FROM r WHERE g = 3 ORDER BY x DESC)

query expect_error(DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE)
SELECT max_by(x, y, 0) FROM r

query expect_error(DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE)
SELECT max_by(x, y, 100001) FROM r

query expect_error(DATATYPE_MISMATCH.NON_FOLDABLE_INPUT)
SELECT max_by(x, y, y) FROM r

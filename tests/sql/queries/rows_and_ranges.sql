-- Rows in the query itself, ranges, constants, limits.
-- Tables: two_hundred_rows

-- no columns
query
SELECT count(*) FROM (SELECT 1 FROM u LIMIT 7)

-- constants
query
SELECT 1, NULL n FROM u

-- no rows by limit
query
SELECT * FROM u LIMIT 0

-- offset
query
SELECT id, v FROM u ORDER BY v NULLS LAST, id DESC LIMIT 5 OFFSET 7

-- a long list
query
SELECT k, count(*) FROM u WHERE id IN (50, 51, 54, 59, 66, 75, 86, 99, 114, 131, 150, 171, 194, 219, 246, 275, 306, 339, 374, 411, 450, 491, 534, 579, 626, 675, 726, 779, 834, 891)
  GROUP BY k

-- a range
query
SELECT sum(id), count(*), max(id) FROM RANGE(100000) WHERE id % 3 = 1

-- a range backwards
query
SELECT id, id * 2 FROM RANGE(10, -10, -3)

-- rows
query
SELECT * FROM VALUES (1, 'a'), (2, NULL), (3, 'null') v(a, b)

-- rows of all types
query
SELECT * FROM VALUES (1Y, 1S, 1, 1L, 0.1F, double('NaN'), 1.50BD, 'ü', DATE'0001-01-01',
  TIMESTAMP'1500-01-01 00:00:00', TIMESTAMP_NTZ'2020-01-01 00:00:00', true, INTERVAL 1 DAY), (NULL, NULL, NULL, NULL,
  NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)

-- rows counted
query
SELECT count(*) FROM VALUES (1, 'a'), (2, 'b') x(a, b) CROSS JOIN RANGE(3)

-- rows of no type
query
SELECT a, count(*) FROM VALUES (NULL), (NULL) v(a) GROUP BY a

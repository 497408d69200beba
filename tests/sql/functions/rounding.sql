-- Rounding to places that no number has, and of values between two neighbors.

statement
CREATE TEMP VIEW t AS
SELECT id, id / 3D AS x, 1e-320D * id AS y, CAST(id * 0.125 AS DECIMAL(10, 3)) AS m FROM RANGE(9)

query
SELECT round(x, -400) AS a, bround(y, -400) AS b, round(id, -400) AS c, round(CAST(id AS INT), -400) AS d FROM t

query
SELECT round(x, -309) AS a, bround(y, -309) AS b, round(id, -309) AS c, round(CAST(id AS INT), -309) AS d FROM t

query
SELECT round(x, 309) AS a, bround(y, 309) AS b, round(id, 309) AS c, round(CAST(id AS INT), 309) AS d FROM t

query
SELECT round(x, 320) AS a, bround(y, 320) AS b, round(id, 320) AS c, round(CAST(id AS INT), 320) AS d FROM t

query
SELECT round(x, 400) AS a, bround(y, 400) AS b, round(id, 400) AS c, round(CAST(id AS INT), 400) AS d FROM t

-- half up and half even
query
SELECT m, round(m, 2) AS up, bround(m, 2) AS even, round(-m, 2) AS minus, bround(-m, 1) AS one FROM t

query
SELECT id, round(id * 15, -1) AS a, bround(id * 15, -1) AS b, round(CAST(id AS TINYINT), -1) AS c FROM t

query
SELECT m, ceil(-m) AS c, floor(-m) AS d, rint(x) AS e FROM t

query
SELECT m, ceil(m, 1) AS a, floor(m, 1) AS b FROM t

query
SELECT round(2.5D) AS a, round(-2.5D) AS b, bround(2.5D) AS c, bround(-3.5D) AS d, round(0.49999999999999994D) AS e, round(1.005D, 2) AS f FROM t

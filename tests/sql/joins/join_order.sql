-- Trees of inner joins that the rule join_order may reorder: c is small, and joins with it come first.

statement
CREATE TEMP VIEW a AS
SELECT CAST(id AS INT) AS k, CAST(id % 7 AS INT) AS q, CAST(id % 5 AS INT) AS x FROM range(100)

statement
CREATE TEMP VIEW b AS
SELECT CAST(id % 7 AS INT) AS q, IF(id % 4 = 0, NULL, CAST(id % 3 AS INT)) AS y, CAST(id AS INT) AS n FROM range(1000)

statement
CREATE TEMP VIEW c AS
SELECT * FROM VALUES (1, 1), (2, 2), (3, 4), (4, NULL), (5, 1), (6, 2), (NULL, 1) AS t(k, z)

statement
CREATE TEMP VIEW d AS
SELECT CAST(id + 1 AS INT) AS q, CAST(id AS INT) AS x FROM range(7)

statement
CREATE TEMP VIEW e AS
SELECT * FROM VALUES (2.5D), (10.0D) AS t(y)

-- one side of a key reads two inputs, and the third input is joined to one of them first
query
SELECT a.k, b.n, c.z FROM a JOIN b ON a.q = b.q JOIN c ON greatest(a.x, b.y) = c.z AND a.k = c.k

query
SELECT a.k, b.n, c.z FROM a JOIN b ON a.q = b.q JOIN c ON greatest(a.x, b.y) <=> c.z AND a.k = c.k

query
SELECT a.k, b.n, c.z FROM a JOIN b ON a.q = b.q JOIN c ON coalesce(b.y, a.x) <=> c.z AND a.k = c.k

query
SELECT a.k, b.n, c.z, d.x FROM a JOIN b ON a.q = b.q JOIN c ON a.k = c.k JOIN d ON d.q = b.q AND greatest(a.x, d.x) = least(b.n, c.z)

query
SELECT a.k, b.n, c.z, d.x FROM a JOIN b ON a.q = b.q JOIN d ON d.q = b.q JOIN c ON a.k = c.k AND greatest(a.x, b.y, d.x) = coalesce(c.z, c.k)

-- a key that raises an error for a row of d without a match in b: x is 0 where q is 1
query
SELECT count(*) AS n FROM (SELECT * FROM b WHERE q > 1) b JOIN d ON b.q = d.q JOIN e ON 10 / d.x = e.y

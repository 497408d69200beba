-- Outer, semi and anti joins whose ON has more than equal keys.

statement
CREATE TEMP VIEW l AS
SELECT * FROM VALUES (1, 10, 'a'), (1, 20, 'b'), (2, NULL, 'c'), (3, 30, NULL), (NULL, 40, 'd'), (4, 5, 'e'), (4, 5, 'e')
  AS t(k, v, s)

statement
CREATE TEMP VIEW r AS
SELECT * FROM VALUES (1, 15, 'a'), (1, 25, NULL), (2, 7, 'c'), (NULL, 40, 'd'), (3, NULL, 'x'), (5, 1, 'z') AS t(k, w, q)

-- a condition of both sides
query
SELECT * FROM l LEFT JOIN r ON l.k = r.k AND v < w

query
SELECT * FROM l RIGHT JOIN r ON l.k = r.k AND v < w

query
SELECT * FROM l FULL JOIN r ON l.k = r.k AND v < w

query
SELECT * FROM l LEFT SEMI JOIN r ON l.k = r.k AND v < w

query
SELECT * FROM l LEFT ANTI JOIN r ON l.k = r.k AND v < w

-- a condition of the side that is kept must not drop its rows
query
SELECT * FROM l LEFT JOIN r ON l.k = r.k AND v > 10

query
SELECT * FROM l RIGHT JOIN r ON l.k = r.k AND w > 10

query
SELECT * FROM l FULL JOIN r ON l.k = r.k AND v > 10 AND w > 20

query
SELECT * FROM l LEFT ANTI JOIN r ON l.k = r.k AND v > 10

-- a condition of the side that is padded
query
SELECT * FROM l LEFT JOIN r ON l.k = r.k AND w IS NULL

query
SELECT * FROM l LEFT JOIN r ON l.k = r.k WHERE w IS NULL

-- a filter above turns the outer join into an inner one
query
SELECT * FROM l LEFT JOIN r ON l.k = r.k WHERE w > 10

query
SELECT * FROM l FULL JOIN r ON l.k = r.k WHERE v > 10

-- no equal keys at all
query
SELECT l.k, v, r.k, w FROM l LEFT JOIN r ON v BETWEEN w - 5 AND w + 5

query
SELECT l.k, v, r.k, w FROM l FULL JOIN r ON v > w

query
SELECT k, v FROM l LEFT SEMI JOIN r ON v > w

query
SELECT k, v FROM l LEFT ANTI JOIN r ON v > w

query
SELECT l.k, r.k FROM l LEFT JOIN r ON false

query
SELECT count(*) FROM l FULL JOIN r ON true

query
SELECT l.k, r.k FROM l FULL JOIN r ON l.k = r.k AND false

-- a condition that is NULL matches nothing
query
SELECT l.k, r.w FROM l LEFT JOIN r ON l.k = r.k AND CAST(NULL AS BOOLEAN)

-- alternatives
query
SELECT l.k, l.s, r.k, r.q FROM l LEFT JOIN r ON l.k = r.k OR l.s = r.q

query
SELECT l.k, r.k FROM l JOIN r ON (l.k = r.k AND v < w) OR (l.k = r.k AND l.s = q)

-- keys that are expressions
query
SELECT l.k, r.k FROM l LEFT JOIN r ON l.k + 1 = r.k AND coalesce(v, 0) + w > 0

query
SELECT l.s, r.q FROM l FULL JOIN r ON upper(l.s) = upper(r.q)

-- keys of different types
query
SELECT l.k, r.k FROM l JOIN (SELECT CAST(k AS DECIMAL(5, 1)) AS k FROM r) r ON l.k = r.k

query
SELECT l.k, r.k FROM l LEFT JOIN (SELECT CAST(k AS STRING) AS k FROM r) r ON l.k = r.k

query
SELECT l.k, r.k FROM l JOIN (SELECT CAST(k AS DOUBLE) AS k FROM r) r USING (k)

-- several keys, NULLs among them
query
SELECT * FROM l FULL JOIN r ON l.k = r.k AND l.s = r.q

query
SELECT * FROM l JOIN r ON l.k <=> r.k AND l.s <=> r.q

query
SELECT l.k, l.v, r.w FROM l LEFT JOIN r ON l.k <=> r.k AND v = w

query
SELECT * FROM l LEFT ANTI JOIN r ON l.k <=> r.k

-- chains
query
SELECT a.k, b.w, c.v FROM l a LEFT JOIN r b ON a.k = b.k LEFT JOIN l c ON b.w > c.v AND b.k = c.k

query
SELECT a.k, b.k, c.k FROM l a FULL JOIN r b USING (k) FULL JOIN (SELECT 9 AS k UNION ALL SELECT 5) c ON c.k = b.k

query
SELECT a.k FROM l a LEFT JOIN (r b JOIN l c ON b.k = c.k) ON a.k = b.k AND c.v > 10

-- columns of the padded side in expressions
query
SELECT l.k, coalesce(w, -1) AS w, w IS NULL AS none, concat(q, '!') AS q FROM l LEFT JOIN r ON l.k = r.k

query
SELECT l.k, x FROM l LEFT JOIN (SELECT k, 1 AS x FROM r) r ON l.k = r.k

-- an aggregate over each side
query
SELECT l.k, n, m FROM (SELECT k, count(*) AS n FROM l GROUP BY k) l
  FULL JOIN (SELECT k, sum(w) AS m FROM r GROUP BY k) r ON l.k = r.k

-- a condition that raises for rows that do not match by key
query
SELECT l.k, r.k FROM l LEFT JOIN r ON l.k = r.k AND 10 / (v - 40) > 0

query expect_error(DIVIDE_BY_ZERO)
SELECT l.k, r.k FROM l LEFT JOIN r ON l.k = r.k AND 10 / (v - 10) > 0

-- conditions that can be true for rows without a match, so the outer join must remain
statement
CREATE TEMP VIEW scores AS
SELECT * FROM VALUES (1, 0.9D, 'abc'), (2, DOUBLE('NaN'), 'xbc'), (3, NULL, NULL), (4, DOUBLE('NaN'), 'b') AS t(id, score, s)

statement
CREATE TEMP VIEW defaults AS
SELECT * FROM VALUES (2, 0.7D, 1), (3, 0.8D, 1), (5, 0.9D, NULL) AS t(id, score, start)

query
SELECT a.id, b.id FROM scores a LEFT JOIN defaults b ON a.id = b.id WHERE nanvl(a.score, b.score) > 0.5

query
SELECT a.id, b.id FROM defaults b RIGHT JOIN scores a ON a.id = b.id WHERE nanvl(1.0D, b.score) > 0

query
SELECT a.id, b.id FROM scores a FULL JOIN defaults b ON a.id = b.id WHERE locate('x', a.s, b.start) = 0

-- ORs over both inputs of a join, which imply a condition on each input. Every compared column has NULLs.

statement
CREATE TEMP VIEW l AS
SELECT * FROM VALUES (1, 10, 'a'), (1, 20, 'b'), (2, NULL, 'c'), (3, 30, NULL), (NULL, 40, 'd'), (4, 5, 'e'), (4, 5, 'e'), (1, NULL, NULL)
  AS t(k, v, s)

statement
CREATE TEMP VIEW r AS
SELECT * FROM VALUES (1, 15, 'a'), (1, 25, NULL), (2, 7, 'c'), (NULL, 40, 'd'), (3, NULL, 'x'), (4, 1, 'e'), (5, 1, 'z') AS t(k, w, q)

statement
CREATE TEMP VIEW m AS
SELECT * FROM VALUES (1, 'a'), (2, 'b'), (3, NULL), (4, 'e'), (NULL, 'f') AS t(k, n)

-- equalities, from which an IN is derived
query
SELECT * FROM l JOIN r ON l.k = r.k WHERE (s = 'a' AND q = 'a') OR (s = 'b' AND q = 'a') OR (s = 'e' AND q = 'e')

query
SELECT * FROM l, r WHERE (v = 10 AND w = 25) OR (v = 20 AND w = 15) OR (v = 30 AND w IS NULL)

-- a branch of the OR has terms of one input only
query
SELECT * FROM l, r WHERE (v > 10 AND w > 7) OR v = 5

query
SELECT * FROM l, r WHERE (l.k = 1 AND r.k = 2) OR (l.k = r.k AND v < w)

-- tests of NULL, and terms that are NULL
query
SELECT * FROM l, r WHERE (v IS NULL AND w > 7) OR (v > 15 AND w IS NULL)

query
SELECT * FROM l, r WHERE (s <> 'a' AND q <> 'a') OR (v > 10 AND NOT (w > 10))

query
SELECT * FROM l, r WHERE (s <=> NULL AND q = 'x') OR (s = 'd' AND q <=> NULL)

query
SELECT * FROM l, r WHERE (coalesce(v, 0) = 0 AND w = 7) OR (v = 40 AND coalesce(w, 40) = 40)

query
SELECT * FROM l, r WHERE (v IN (10, NULL) AND w = 15) OR (v NOT IN (10, 20) AND w = 25)

query
SELECT * FROM l, r WHERE (v = 10 AND w = 15) OR (CAST(NULL AS BOOLEAN) AND w = 7)

-- nested ANDs and ORs
query
SELECT * FROM l, r WHERE (v > 5 AND (w = 15 OR (w = 7 AND s = 'c'))) OR ((v = 5 OR v IS NULL) AND (q = 'c' OR q = 'e'))

-- the query already has the implied condition
query
SELECT * FROM l, r WHERE s IN ('e', 'a') AND ((s = 'a' AND q = 'a') OR (s = 'e' AND q = 'e'))

-- three inputs
query
SELECT * FROM l JOIN r ON l.k = r.k JOIN m ON m.k = r.k WHERE (s = 'a' AND q = 'a' AND n = 'a') OR (v = 5 AND w = 1 AND n = 'e')

query
SELECT * FROM l JOIN r ON l.k = r.k LEFT JOIN m ON m.k = r.k WHERE (v = 10 AND n = 'a') OR (v = 5 AND n = 'e') OR (v = 30 AND n IS NULL)

-- outer joins and semi joins with the OR in the join condition
query
SELECT * FROM l LEFT JOIN r ON l.k = r.k AND ((v = 10 AND w = 15) OR (v = 20 AND w = 25))

query
SELECT * FROM l RIGHT JOIN r ON l.k = r.k AND ((v = 10 AND w = 15) OR (v = 20 AND w = 25))

query
SELECT * FROM l FULL JOIN r ON l.k = r.k AND ((v = 10 AND w = 15) OR (v = 20 AND w = 25))

query
SELECT * FROM l LEFT SEMI JOIN r ON l.k = r.k AND ((v = 10 AND w = 15) OR (v = 20 AND w = 25))

query
SELECT * FROM l LEFT ANTI JOIN r ON l.k = r.k AND ((v = 10 AND w = 15) OR (v = 20 AND w = 25))

query
SELECT l.*, EXISTS (SELECT 1 FROM r WHERE l.k = r.k AND ((v = 10 AND w = 15) OR (v = 20 AND w = 25))) e FROM l

query
SELECT * FROM l WHERE v NOT IN (SELECT w FROM r WHERE (v = 40 AND q = 'd') OR (v = 10 AND q = 'a'))

-- outer joins below a filter with the OR
query
SELECT * FROM l LEFT JOIN r ON l.k = r.k AND w > 15 WHERE (v = 10 AND q IS NULL) OR (v = 30 AND w IS NULL)

query
SELECT * FROM l RIGHT JOIN r ON l.k = r.k AND v > 15 WHERE (s IS NULL AND q = 'a') OR (v IS NULL AND w = 1)

query
SELECT * FROM l FULL JOIN r ON l.k = r.k AND v > 15 WHERE (s IS NULL AND q = 'a') OR (v = 40 AND w IS NULL) OR (v IS NULL AND q IS NULL)

-- above an aggregate
query
SELECT * FROM (SELECT k, sum(v) t FROM l GROUP BY k) a JOIN r ON a.k = r.k WHERE (a.k = 1 AND w = 15 AND t = 30) OR (a.k = 4 AND w = 1)

-- a branch of the OR that can raise an error: no row raises one, then a row does
query
SELECT l.k, w FROM l, r WHERE (v = 10 AND w = 15) OR (100 / (w + 1) > 50 AND v = 5)

query expect_error(DIVIDE_BY_ZERO)
SELECT l.k, w FROM l, r WHERE (v = 10 AND w = 15) OR (100 / (w - 1) > 50 AND v > 4)

-- Joins and subqueries over rows of odd values, and over no rows.
-- Tables: odd_rows, two_hundred_rows, no_odd_rows

-- floats not in a list
query
SELECT k FROM t WHERE f NOT IN (0.0D, 7.0D)

-- floats joined
query
SELECT a.k, b.k, a.f FROM t a JOIN t b ON a.f = b.f

-- nothing to join
query
SELECT * FROM e FULL JOIN (SELECT k kk FROM u WHERE id < 3) ON k = kk

-- a correlated count
query
SELECT k, (SELECT count(*) FROM u b WHERE b.id = a.k + 190) c FROM t a

-- exists in select
query
SELECT k, EXISTS (SELECT 1 FROM u b WHERE b.k = a.k) e FROM t a

-- not in with NULLs
query
SELECT k FROM t WHERE k NOT IN (SELECT v FROM u)

-- a CTE twice
query
WITH c AS (SELECT k, sum(v) sv FROM u GROUP BY k) SELECT a.k, b.sv FROM c a JOIN c b ON a.k = b.k + 1

-- hints
query
SELECT /*+ merge(b) */ count(*) FROM u a JOIN t b ON a.k = b.k

-- a range joined
query
SELECT r.id, count(*) FROM RANGE(10) r JOIN u ON r.id = u.k GROUP BY 1

-- rows joined
query
SELECT b, sum(v) FROM VALUES (1, 'a'), (2, 'b') x(a, b) JOIN u ON a = k GROUP BY b

-- fields of a subquery's struct
query
SELECT k, (SELECT max(struct(k, s)) FROM u).s a, (SELECT max(struct(k, s)) FROM u).k b, (SELECT max(struct(k, s)) FROM
  u) c FROM t

-- a subquery's struct and a field of it
query
SELECT (SELECT named_struct('a', id, 'b', s) FROM u WHERE id = 5) x, (SELECT named_struct('a', id, 'b', s) FROM u
  WHERE id = 5).b y, (SELECT named_struct('a', id, 'b', s) FROM u WHERE id < 0) z FROM t

-- PIVOT, DISTINCT and averages over rows of odd values, and over no rows.
-- Tables: odd_rows, two_hundred_rows, no_odd_rows

-- averages of bigint
query context_declines(unknown function try_avg)
SELECT k, avg(l), try_avg(l), avg(DISTINCT l) FROM (SELECT k, CASE b WHEN 10 THEN 4611686018427387905 WHEN 20 THEN
  -4611686018427387904 END l FROM t) GROUP BY GROUPING SETS ((k), ())

-- correlation with a constant
-- MinSparkVersion: 4.3
query
SELECT corr(f, 1.0D), corr(1.0D, f), corr(f, k), corr(k, b) FROM t

-- unpivot
query
SELECT * FROM (SELECT id, v, CAST(k AS LONG) k FROM u) UNPIVOT (val FOR name IN (v, k))

-- pivot
query
SELECT * FROM (SELECT k, s, v, m FROM u) PIVOT (sum(v) AS a, max(m) AS b FOR k IN (1, 2, 30))

-- pivot by words and NULL
query
SELECT * FROM (SELECT s, v FROM u) PIVOT (count(v) FOR s IN ('1', NULL, '3'))

-- rollup
query
SELECT k, s, count(*), grouping_id() FROM u GROUP BY ROLLUP (k, s)

-- distinct aggregates
query
SELECT count(DISTINCT k, s), sum(DISTINCT v) FILTER (WHERE k = 1), count(*) FILTER (WHERE v > 3) FROM u

-- nothing to aggregate
query
SELECT count(*), sum(k), max(s), collect_list(k) FROM e

-- nothing to group
query
SELECT k, count(*) FROM e GROUP BY k

-- constant keys are no keys, but no rows make no group
query
SELECT 'a' AS a, count(*) AS n FROM e GROUP BY 'a'

query
SELECT 1 + 1 AS a, count(*) AS n FROM e GROUP BY ALL

-- many CASEs
query
SELECT sum(CASE WHEN k = 0 THEN v ELSE 0 END) c0, sum(CASE WHEN k = 1 THEN v ELSE 0 END) c1, sum(CASE WHEN k = 2 THEN
  v ELSE 0 END) c2, sum(CASE WHEN k = 3 THEN v ELSE 0 END) c3, sum(CASE WHEN k = 4 THEN v ELSE 0 END) c4, sum(CASE
  WHEN k = 5 THEN v ELSE 0 END) c5, sum(CASE WHEN k = 6 THEN v ELSE 0 END) c6, sum(CASE WHEN k = 7 THEN v ELSE 0 END)
  c7, sum(CASE WHEN k = 8 THEN v ELSE 0 END) c8, sum(CASE WHEN k = 9 THEN v ELSE 0 END) c9, sum(CASE WHEN k = 10 THEN
  v ELSE 0 END) c10, sum(CASE WHEN k = 11 THEN v ELSE 0 END) c11, sum(CASE WHEN k = 12 THEN v ELSE 0 END) c12,
  sum(CASE WHEN k = 13 THEN v ELSE 0 END) c13, sum(CASE WHEN k = 14 THEN v ELSE 0 END) c14, sum(CASE WHEN k = 15 THEN
  v ELSE 0 END) c15, sum(CASE WHEN k = 16 THEN v ELSE 0 END) c16, sum(CASE WHEN k = 17 THEN v ELSE 0 END) c17,
  sum(CASE WHEN k = 18 THEN v ELSE 0 END) c18, sum(CASE WHEN k = 19 THEN v ELSE 0 END) c19 FROM u

-- Lambdas over arrays: NULL arrays and elements, columns of the row, errors of elements.
-- Tables: structs

-- transform
query
SELECT k, transform(a, x -> x * 2L + k), transform(fa, x -> -x) FROM t

-- with places
query
SELECT k, transform(a, (x, i) -> coalesce(x, 0) % 10 + i * k), filter(a, (x, i) -> i >= 1) FROM t

-- filter
query
SELECT k, filter(a, x -> x > 1), filter(fa, x -> x = 'NaN'), filter(a, x -> NULL) FROM t

-- exists
query
SELECT k, exists(a, x -> x > 1), exists(fa, x -> x IS NULL), exists(a, x -> x > k) FROM t

-- forall
query
SELECT k, forall(a, x -> x > 0), forall(fa, x -> x IS NOT NULL), forall(a, x -> x <> k) FROM t

-- in each other
query
SELECT k, transform(a, x -> transform(fa, y -> y * x + k)), filter(array(a, NULL), b -> exists(b, x -> x = k)) FROM t

-- of structs
query
SELECT k, transform(array(st, NULL), s -> s.s), filter(array(st), s -> s.x = -5)[0].f FROM t WHERE st IS NOT NULL AND
  st.x = -5

-- made of structs
query
SELECT k, transform(a, x -> named_struct('x', x, 'st', st)) FROM t

-- with CASE
query
SELECT k, transform(a, x -> CASE WHEN x > 1 THEN 10 / (x - 1) ELSE k END) FROM t WHERE k < 5

-- with strings
query
SELECT k, transform(split(concat(st.s, ',b,c'), ','), w -> concat(upper(w), '-', ts)) FROM t

-- in conditions
query
SELECT k FROM t WHERE exists(a, x -> x = 2) AND NOT forall(fa, f -> f IS NULL)

-- under aggregates
query
SELECT k % 2, sum(size(filter(a, x -> x IS NOT NULL))) FROM t GROUP BY 1

-- over aggregates
query context_declines(the column k is neither grouped by nor inside an aggregate function; add it to GROUP BY or use any_value)
SELECT k % 2 g, transform(sort_array(collect_list(k)), x -> x + k % 2) FROM t GROUP BY 1

-- guarded
query
SELECT k, CASE WHEN k > 100 THEN transform(a, x -> 1 / 0) END FROM t

-- an error behind what decides
query
SELECT exists(array(k, 0), x -> 10 / x > 0), forall(array(-k, 0), x -> 1 / x > 0) FROM t

-- an error
query expect_error(ARITHMETIC_OVERFLOW)
SELECT transform(a, x -> x + 2147483647) FROM t

-- an error that decides
query expect_error(DIVIDE_BY_ZERO)
SELECT exists(array(0, k), x -> 10 / x > 0) FROM t

-- floats in keys
query
SELECT x.k, y.k FROM t x FULL JOIN t y ON x.fa <=> y.fa

-- of nothing
query
SELECT transform(a, x -> x + 1), exists(a, x -> x > k) FROM t WHERE k > 100

-- a finish lambda that skips the state, in all rows or in some, hides no error of the merge
query expect_fallback(AGGREGATE that may raise errors) context_declines(AGGREGATE that may raise errors)
SELECT aggregate(array(k, 3), 0, (s, x) -> CAST(1 / x AS INT), s -> 7) FROM t

query expect_fallback(AGGREGATE that may raise errors) context_declines(AGGREGATE that may raise errors)
SELECT aggregate(a, 0, (s, x) -> CAST(CAST(x AS BIGINT) AS INT), s -> IF(k > 1, 5, s)) FROM t

query
SELECT aggregate(array(k, 3), 0, (s, x) -> s + x, s -> IF(s > 4, s, k)), aggregate(array(k), 1, (s, x) -> s + 1, s -> coalesce(s, 1) % 2) FROM t

-- Functions of arrays with lambdas of two parameters: aggregate, zip_with, array_sort.
-- Tables: nested_columns

-- aggregate
query
SELECT k, aggregate(a, 0L, (s, x) -> s + coalesce(x, 0)), aggregate(b, CAST(0 AS DOUBLE), (s, x) -> s / 2 + x) FROM t

-- NULL stays NULL
query
SELECT k, aggregate(a, 0L, (s, x) -> s + x), aggregate(d, 0D, (s, x) -> s + x), aggregate(d, 1D, (s, x) -> x) FROM t

-- with an end
query
SELECT k, aggregate(a, 0L, (s, x) -> s + x, s -> s * 10 + k), aggregate(a, 'x', (s, x) -> concat(s, '-', x), s -> NULL IS NULL) FROM t

-- an average
query
SELECT k, aggregate(d, named_struct('n', CAST(NULL AS INT), 's', CAST(NULL AS DOUBLE)), (s, x) -> named_struct('n',
  coalesce(s.n, 0) + 1, 's', coalesce(s.s, 0D) + x), s -> s.s / s.n) v FROM t

-- reduce over columns of the row and other lambdas
query
SELECT k, reduce(a, CAST(k AS BIGINT), (s, x) -> s * 2 + aggregate(b, 0, (p, y) -> p + y)) v, transform(array(a, b), e -> aggregate(e,
  0L, (s, x) -> s + x)) w FROM t

-- strings
query
SELECT k, aggregate(map_keys(m), '', (s, x) -> concat(s, x)) v FROM t

-- an end that never is NULL
query
SELECT aggregate(array(k, 1), 0, (s, x) -> s + x, s -> coalesce(s, 0)) v FROM t

-- decimals
query
SELECT k, aggregate(a, 1.50BD, (s, x) -> CAST(s + x AS DECIMAL(3, 2))) v FROM t WHERE k IN (1, 3, 4)

-- to NULL
query
SELECT k, aggregate(a, 5, (s, x) -> NULL) v FROM t

-- errors
query expect_error(ARITHMETIC_OVERFLOW)
SELECT aggregate(a, 4, (s, x) -> s + x) FROM t WHERE k = 7 OR k = 1

query expect_error(ARITHMETIC_OVERFLOW)
SELECT aggregate(a, 5, (s, x) -> s + x) + k FROM t WHERE k = 7

query expect_error(DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE)
SELECT aggregate(a, 0, (s, x) -> s + x * 1L) FROM t

query expect_error(DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE)
SELECT aggregate(k, 0, (s, x) -> s + x) FROM t

-- a start that fails for arrays that are NULL
query
SELECT k, aggregate(a, 1 / (k - 4), (s, x) -> s + coalesce(x, 0)) v FROM t

-- what is not evaluated
query
SELECT k, CASE WHEN k > 100 THEN aggregate(a, 0, (s, x) -> s % 0) END v FROM t

-- states that are arrays
query
SELECT k, aggregate(a, array(k), (s, x) -> concat(s, array(x, x))) v FROM t

-- zip_with
query
SELECT k, zip_with(a, b, (x, y) -> x + y) v, zip_with(a, d, (x, y) -> named_struct('x', x, 'y', y)) w, zip_with(b, a, (x, y) -> k) z FROM t

-- zip_with and columns
query
SELECT k, zip_with(a, map_keys(m), (x, y) -> concat_ws('/', x, y, k)) v, zip_with(a, array(k), (x, y) -> x) w FROM t

query expect_error(DIVIDE_BY_ZERO)
SELECT zip_with(a, b, (x, y) -> x / (y - 20)) FROM t

-- array_sort
query
SELECT k, array_sort(a) a, array_sort(b) b, array_sort(d) d, array_sort(map_keys(m)) m FROM t

-- array_sort of nested values
query
SELECT k, array_sort(array(a, b)) v, array_sort(array(named_struct('x', k, 'd', d), named_struct('x', 3, 'd', array(-1D)))) w FROM t

-- array_sort by lambdas
query
SELECT k, array_sort(a, (x, y) -> CASE WHEN x IS NULL AND y IS NULL THEN 0 WHEN x IS NULL THEN -1 WHEN y IS NULL THEN 1 WHEN x < y
  THEN 1 WHEN x > y THEN -1 ELSE 0 END) v, array_sort(map_keys(m), (x, y) -> length(x) - length(y)) w FROM t

query
SELECT k, array_sort(filter(a, x -> x IS NOT NULL), (x, y) -> x % 3 - y % 3) v FROM t

-- a lambda that is no order
query expect_fallback(does not order all elements) context_declines(does not order all elements)
SELECT k, array_sort(b, (x, y) -> 1) v FROM t

query expect_fallback(does not order all elements) context_declines(does not order all elements)
SELECT k, array_sort(b, (x, y) -> CASE WHEN x < y THEN 1 ELSE 0 END) v FROM t

-- a lambda that makes NULL equal to all other elements
query expect_fallback(does not order all elements) context_declines(does not order all elements)
SELECT array_sort(IF(k > 0, array(3, NULL, 1), NULL), (x, y) -> IF(x < y, -1, IF(x > y, 1, 0))) v FROM t

-- the same lambda is the default comparison of elements that are not NULL
query
SELECT k, array_sort(map_keys(m), (x, y) -> IF(x < y, -1, IF(x > y, 1, 0))) v, array_sort(map_keys(m)) w FROM t

query expect_error(DATATYPE_MISMATCH.UNEXPECTED_RETURN_TYPE)
SELECT array_sort(a, (x, y) -> 'x') FROM t

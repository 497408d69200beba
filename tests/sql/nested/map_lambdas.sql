-- Lambdas over maps.
-- Tables: nested_columns

-- map_filter
query
SELECT k, map_filter(m, (x, y) -> y > 1), map_filter(n, (x, y) -> y IS NULL), map_filter(m, (x, y) -> x < 'b' AND k < 6) FROM t

-- transform_values
query
SELECT k, transform_values(m, (x, y) -> concat(x, y)), transform_values(n, (x, y) -> y * 2L + k), transform_values(m, (x, y) -> x) FROM t

-- transform_keys
query
SELECT k, transform_keys(m, (x, y) -> concat(x, '!', k)), transform_keys(n, (x, y) -> named_struct('x', x)) FROM t

-- map_zip_with
query
SELECT k, map_zip_with(m, n, (x, y, z) -> concat_ws('/', x, y, z)), map_zip_with(n, m, (x, y, z) -> y - z) FROM t

query
SELECT k, map_zip_with(m, m, (x, y, z) -> named_struct('y', y, 'z', z, 'k', k)) v FROM t

-- in each other
query
SELECT k, transform_values(m, (x, y) -> aggregate(a, 0L, (s, e) -> s + coalesce(e, 0)) + coalesce(y, 0)) v, transform(array(m, n), e ->
  size(map_filter(e, (x, y) -> y > k))) w FROM t

-- errors
query expect_error(DUPLICATED_MAP_KEY)
SELECT transform_keys(m, (x, y) -> 1) FROM t

query expect_error(NULL_MAP_KEY)
SELECT transform_keys(m, (x, y) -> y) FROM t WHERE k < 3

query expect_error(DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE)
SELECT map_filter(m, (x, y) -> y) FROM t

query expect_error(DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE)
SELECT map_filter(a, (x, y) -> true) FROM t

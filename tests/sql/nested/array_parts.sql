-- Elements put into arrays, NULLs left out, arrays side by side, sets of doubles and of nested values.
-- Tables: nested_columns

-- array_insert
-- MinSparkVersion: 4.0
query
SELECT k, array_insert(a, 2, k), array_insert(a, -1, NULL), array_insert(b, -6, 0), array_insert(d, k, k / 2D) FROM t

-- array_append and array_prepend
query
SELECT k, array_append(a, k), array_prepend(b, NULL), array_append(d, -0.0D), array_prepend(array(k), 5) FROM t

-- array_compact
query
SELECT k, array_compact(a), array_compact(d), array_compact(array(k, NULL)) FROM t

-- arrays_zip
query
SELECT k, arrays_zip(a, b), arrays_zip(a, map_keys(m), d, array(k)) FROM t

query
SELECT k, inline(arrays_zip(a, b)) FROM t

-- get
query
SELECT k, get(a, 1), get(a, k), get(b, -1), try_element_at(a, k), try_element_at(b, -2) FROM t

-- doubles
query
SELECT k, array_position(d, 0D), array_remove(d, 0D), array_contains(d, double('NaN')), array_max(d), sort_array(d, false) FROM t

query
SELECT k, array_distinct(filter(d, x -> x <> 0)), array_union(array(1D), array(double('NaN'), k / 2D)), array_except(array(k / 2D, NULL), array(1D)),
  arrays_overlap(array(1D, k / 2D), array(1.5D, NULL)) FROM t

query expect_fallback(-0.0) context_declines(-0.0)
SELECT k, array_distinct(d) FROM t

-- nested values
query
SELECT k, array_distinct(array(a, b, a)), array_contains(array(a, b), array(1)), array_position(array(struct(k + 0), struct(2)), struct(2)), array_max(array(a,
  b)), sort_array(array(b, a)) FROM t

query
SELECT k, array_union(array(a), array(b, a)), array_intersect(array(a, b), array(a)), array_remove(array(array(k), array(2)), array(2)) FROM t

-- the types of sets
query
SELECT array_intersect(array(k, NULL), array(k)), array_intersect(array(k), array(k, NULL)), array_intersect(a, b), array_remove(array(k), 1), array_remove(a, 1), array_except(array(k), a) FROM t

-- errors
query expect_error(INVALID_INDEX_OF_ZERO)
SELECT array_insert(a, k - 1, 0) FROM t

query expect_error(DATATYPE_MISMATCH.ARRAY_FUNCTION_DIFF_TYPES)
SELECT array_insert(a, 1, 'x') FROM t

query expect_error(DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE)
SELECT arrays_zip(a, k) FROM t

-- arrays of several types
query
SELECT array(id) || array(2L) AS a, concat(array(CAST(id AS INT), NULL), array(id)) AS b, concat(array(1.5BD), array(CAST(id AS INT))) AS c FROM RANGE(3)

-- Building maps, and asking them for keys, values and sizes.
-- Tables: nested_columns

-- map
query
SELECT k, map('k', k, 's', size(a)), map(k, a, -k, b), map('x', k, 'y', NULL), map(k, map('y', k)) FROM t

-- keys and values of several types
query
SELECT k, map(1, 'x', k + 10L, 'y'), map(k, 1BD, -1L, k * 1.5BD), map('a', 1, 'b', k) FROM t

-- map_from_arrays
query
SELECT k, map_from_arrays(array(k, k + 1), array('x', NULL)), map_from_arrays(map_keys(m), map_values(m)) FROM t

-- map_from_entries
query
SELECT k, map_from_entries(map_entries(m)), map_from_entries(array(struct(k, 'x'))) FROM t

query
SELECT k, map_from_entries(array(named_struct('p', k, 'q', a), CASE WHEN k > 2 THEN named_struct('p', -k, 'q', b) END)) FROM t

-- map_concat
query
SELECT k, map_concat(m, map('q', k)), map_concat(map('q', k), n), map_concat(m) FROM t

-- str_to_map
query
SELECT k, str_to_map(concat('a:', k, ',b,c:')), str_to_map(concat('x=', k, ';y=z'), ';', '='), str_to_map(NULL), str_to_map(concat('x:', k, ';y'), ';') FROM t

-- keys
query
SELECT k, map_contains_key(m, 'a'), map_contains_key(n, 'c'), map_contains_key(m, element_at(map_keys(n), 1)) FROM t WHERE k <> 3

-- access
query
SELECT k, m['a'], m.b, element_at(m, 'a'), try_element_at(n, 'b'), n[map_keys(m)[0]] FROM t WHERE k NOT IN (3)

-- parts
query
SELECT k, map_keys(m), map_values(m), map_entries(n), size(m), cardinality(n) FROM t

-- nested keys
query
SELECT k, map(struct(k), 'x')[struct(k)], map(array(k, NULL), 1)[array(k)], map_contains_key(map(array(k), 1), array(1)) FROM t

-- exploded
query
SELECT k, key, value FROM t LATERAL VIEW explode(map_concat(m, map('q', k))) e AS key, value

query
SELECT k, posexplode(map(k, 'x', -k, 'y')) FROM t

-- constants
query
SELECT k, map('a', k)['a'], x.m FROM t CROSS JOIN (SELECT map('x', array(1, NULL), 'y', NULL) m) x

query
SELECT k, element_at(map(1, 'a', 2, 'b'), k % 3) v, map(1, 'a', 3, 'c')[k] w, map(DATE'2020-01-01', 1.50BD) z FROM t

-- below an aggregate and a sort
query
SELECT k % 2 g, max(map('x', k)['x']) v, count(m['a']) w FROM t GROUP BY 1

query
SELECT map('x', k) v FROM t ORDER BY k DESC

-- guarded
query
SELECT k, CASE WHEN k > 100 THEN map(a[0], 1) END v FROM t

-- errors
query expect_error(NULL_MAP_KEY)
SELECT map(a[0], 1) FROM t WHERE k = 5

query expect_error(DUPLICATED_MAP_KEY)
SELECT map(k, 1, 3, 2) FROM t

query expect_error(DUPLICATED_MAP_KEY)
SELECT map_from_arrays(array(k, 2), array(1, 2)) FROM t

query expect_error(DUPLICATED_MAP_KEY)
SELECT map_concat(m, n) FROM t

query expect_error(DUPLICATED_MAP_KEY)
SELECT str_to_map(concat('a:', k, ',a')) FROM t

query expect_error(NULL_MAP_KEY)
SELECT map_from_entries(array(struct(a[0], 1))) FROM t WHERE k IN (1, 5)

query expect_error(WRONG_NUM_ARGS.WITHOUT_SUGGESTION)
SELECT map(k, 1, 2) FROM t

query expect_error(DATATYPE_MISMATCH.INVALID_MAP_KEY_TYPE)
SELECT map(m, 1) FROM t

query expect_error(DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE)
SELECT map_from_entries(a) FROM t

query expect_error(DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE)
SELECT map_from_arrays(a, k) FROM t

-- floating-point keys: whether -0.0 stays depends on whether Spark compiles the query; 3.5 takes it for a key of its own
-- MinSparkVersion: 4.0
query expect_fallback(of floating-point keys)
SELECT k, map(-0.0D, 3, k + 0.5D, 4) FROM t

query
SELECT k, map(1.5D, k, 2.5D, -k) FROM t

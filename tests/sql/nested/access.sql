-- Fields, elements and keys of nested values; NULLs at every level.

statement
CREATE TEMP VIEW t AS
SELECT * FROM VALUES
  (1, array(1, 2, NULL), map('a', 1, 'b', NULL), named_struct('x', 1, 'y', named_struct('z', 'p', 'w', array(1.5D))), array(named_struct('n', 1, 'm', 'u'), NULL)),
  (2, array(), map(), named_struct('x', NULL, 'y', NULL), array()),
  (3, NULL, NULL, NULL, NULL),
  (4, array(NULL), map('c', 3), named_struct('x', 4, 'y', named_struct('z', NULL, 'w', array())), array(named_struct('n', NULL, 'm', NULL))) AS t(id, a, m, s, q)

query
SELECT id, s.x, s.y.z, s.y.w, s.y.w[0] IS NULL FROM t WHERE id <> 4

query
SELECT id, get(a, 0), get(a, 5), try_element_at(a, 2), try_element_at(a, -1), size(a), cardinality(q), a IS NULL FROM t

query
SELECT id, m['a'], m['zz'], element_at(m, 'b'), try_element_at(m, 'c'), size(m) FROM t

query
SELECT id, map_keys(m), map_values(m), map_entries(m), map_contains_key(m, 'a') FROM t

query
SELECT id, q.n, q.m, get(q, 0).n, q[0].m FROM t WHERE size(q) > 0

query
SELECT id, array_contains(a, 2), array_position(a, 2), array_max(a), array_min(a), array_distinct(a), array_remove(a, 1), sort_array(a) FROM t

query
SELECT id, array(id, s.x), named_struct('i', id, 's', s), struct(id, a).a, map('k', id)['k'], array(array(id), a) FROM t

query
SELECT id, concat(a, array(9)), reverse(a), array_union(a, array(1)), array_except(a, array(1)), array_repeat(id, 2), flatten(array(a, array(7))) FROM t

query
SELECT id, explode(a) AS e FROM t

query
SELECT id, explode_outer(a) AS e FROM t

query
SELECT id, posexplode(a) FROM t

query
SELECT id, posexplode_outer(q) FROM t

query
SELECT id, inline(q) FROM t WHERE id = 1

query
SELECT id, k, v FROM t LATERAL VIEW explode(m) AS k, v

query
SELECT id, x, y FROM t LATERAL VIEW OUTER explode(a) AS x LATERAL VIEW OUTER explode(m) AS y, z

query
SELECT e, count(*) FROM (SELECT explode(a) AS e FROM t) GROUP BY e

query
SELECT id, sum(e) FROM t LATERAL VIEW explode(a) AS e WHERE e IS NOT NULL GROUP BY id

query
SELECT s, count(*) FROM t GROUP BY s

query
SELECT s.y, max(id) FROM t GROUP BY s.y

query
SELECT x.id, y.id FROM t x JOIN t y ON x.s = y.s

query
SELECT x.id, y.id FROM t x JOIN t y ON x.s <=> y.s AND x.a <=> y.a

query
SELECT id, s FROM t ORDER BY s DESC NULLS LAST, id

query
SELECT id, s = named_struct('x', 1, 'y', s.y), s IS NULL, a = array(1, 2, NULL), a < array(5), s.y <=> NULL FROM t

query
SELECT id FROM t WHERE s.x > 0 AND s.y.z = 'p'

query
SELECT id, transform(q, e -> e.n), filter(a, e -> e > 1), exists(q, e -> e.m = 'u'), forall(a, e -> e > 0), transform(a, (e, i) -> e + i) FROM t

query
SELECT id, coalesce(a, array()), if(id = 1, s, NULL), CASE WHEN id > 1 THEN a END, nullif(a, array()) FROM t

query
SELECT sort_array(collect_list(s.x)), sort_array(collect_list(s.y.z)), max(s), min(a), count(DISTINCT s), count(DISTINCT a) FROM t WHERE id IN (1, 3)

query
SELECT id, a[0] FROM t WHERE id = 1

query expect_error(INVALID_ARRAY_INDEX)
SELECT id, a[3] FROM t

query expect_error(INVALID_ARRAY_INDEX_IN_ELEMENT_AT)
SELECT id, element_at(a, 4) FROM t

query expect_error(INVALID_INDEX_OF_ZERO)
SELECT id, element_at(a, id - 1) FROM t WHERE id = 1

query expect_error(DUPLICATED_FIELD_NAME_IN_ARROW_STRUCT) expect_fallback(of fields of one name) context_declines(of fields of one name)
SELECT id, arrays_zip(a, a) FROM t

query
SELECT id, map_from_arrays(array('a'), array(id)) FROM t

query
SELECT id, aggregate(a, 0, (x, y) -> x + coalesce(y, 0)) FROM t

-- MinSparkVersion: 4.0
query
SELECT id, to_json(s) FROM t

-- MinSparkVersion: 4.0
query expect_fallback(grouping, joining or sorting by map<string,int> values is not supported) context_declines(grouping, joining or sorting by map<string,int> values is not supported)
SELECT m, count(*) FROM t GROUP BY m

-- one type for values that differ in what may be NULL in them
query
SELECT id, coalesce(a, array(1)), coalesce(array(1), a), array(array(1), a), greatest(array(1), a) FROM t

-- a map written in place is not built to look up a key in it
query
SELECT map(id, 1, id, 2)[id] AS same, map(id, 1, nullif(id, id), 2)[1] AS missing, map(1, 1 / (id - 1))[0] AS unread,
  map(0.0D, id, double(id), 2)[-0.0D] AS zero FROM t

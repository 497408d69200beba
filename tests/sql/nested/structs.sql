-- Structs: exploded, repeated names, and arrays of them that are empty.
-- Tables: odd_rows, two_hundred_rows

-- lateral views
query
SELECT k, x, kk, vv FROM t LATERAL VIEW OUTER explode(a) AS x LATERAL VIEW OUTER explode(mp) AS kk, vv

-- exploded structs
query
SELECT e.x, count(*) FROM (SELECT explode(array(st, st)) e FROM t) GROUP BY 1

-- inlined structs
query
SELECT k, inline_outer(array(st)) FROM t

-- nested columns
query
SELECT a, mp, st, st.x, mp['k'], a[0] FROM t WHERE k = 1

-- empty arrays of structs
query context_declines(a correlated subquery of collect_list is not supported)
SELECT k, IF(k = 1, array(st), array()) a, coalesce(IF(k = 1, array(array(st)), NULL), array(array())) b, (SELECT
  collect_list(struct(id)) FROM u b WHERE b.id = a.k) c, array(NULL, st)[0].x d FROM t a

-- a struct that repeats a name
query
SELECT k, count(*) FROM u WHERE named_struct('a', k, 'a', v) > named_struct('a', 2, 'a', 3L) GROUP BY k

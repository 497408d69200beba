-- Scalar, IN and EXISTS subqueries, correlated and not.
-- Tables: typed_rows, pairs, nested_rows

query
with c(a, b) as (select id, name from t), d as (select a from c where a > 1) select * from d join c on d.a = c.a

query
select (select max(id) from t)

query
select id from t where id = (select min(id) from u)

query
select id from t where exists (select 1 from u where u.id = t.id)

query
select id from t where not exists (select 1 from u where u.id = t.id and u.v > 150)

query
select id from t where id in (select id from u)

query
select id from t where id not in (select id from u)

query
select id from t where id not in (select id from u where id is not null)

query
select id from t where id not in (select v from u where u.id = t.id)

query
select id from t where (id, name) in (select id, tag from u)

query
select id from t where id in (select id from u) or name = 'b'

query
select id from t where exists (select 1 from u where u.id = t.id) or flag

query
select id, exists (select 1 from u where u.id = t.id) e from t

query
select id from t where exists (select * from u where u.id < t.id and u.v > 100)

query
select id from t a where big > (select avg(big) from t b where b.name = a.name)

query
select id from t where id > (select avg(id) from u) and exists (select 1 from u)

query expect_error(SCALAR_SUBQUERY_TOO_MANY_ROWS)
select (select id from u)

query
select id from t where id = (select id from u where v = 100)

query
select id in (select id from u where v = 300) from t where id is not null

query
select t.name, x.c from t join (select id, count(*) c from u group by id) x on t.id = x.id

query expect_error(INVALID_SUBQUERY_EXPRESSION.SCALAR_SUBQUERY_RETURN_MORE_THAN_ONE_OUTPUT_COLUMN)
select (select id, v from u) from t

query expect_error(DATATYPE_MISMATCH.IN_SUBQUERY_LENGTH_MISMATCH)
select id from t where id in (select id, v from u)

query
select id from t where exists (select 1)

query
(select id from t order by id nulls last limit 2) union all (select id from u order by id desc limit 1)

query
select id from t a where a.id = 1 and exists (select 1 from u b where b.id = a.id and exists (select 1 from u c where
  c.id = b.id))

query
select id in (select id from u where v = 300) from t

query
select id in (select id from u where v = 99) e, id not in (select id from u) from t

query
select id from t where (id in (select id from u) or id not in (select v from u)) and flag is not null

query
select id from t where case when id in (select id from u) then true else false end

query
select id from t where big > (select sum(v) / 20 from u where u.id >= t.id or t.id is null)

query
select (select max(id) from u where u.id = t.id), exists (select 1 from u where u.id = t.id and u.v > t.big), id in
  (select id from u where u.v > t.big) from t

-- MinSparkVersion: 4.0
query
select (select max(v) from u where u.id = t.id and u.v > t.id), not exists (select t.big from u where u.tag = t.name)
  from t

query
select exists (select 1 from u where u.id = st.x), coalesce((select max(v) from u where u.id = n.st.x), 0) from n

query
select (id + 1, big) in (select id, v from u where u.v > t.big), (id, 1) in (select id, v from u) from t

query
select id from t where (id in (select id from u)) = false

query
select id from t where (id in (select id from u)) <> true

query
select id from t where not (not (id in (select id from u)))

query
select id from t where (id not in (select id from u)) = false

query
select id, id not in (select id from u) a, (id in (select id from u)) = false b, not not (id in (select id from u)) c
  from t

query
select id from t where (id in (select id from u)) = cast('false' as boolean)

query expect_error(UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.UNSUPPORTED_IN_EXISTS_SUBQUERY)
select id from t order by exists (select 1 from u where u.id = t.id), id

-- MinSparkVersion: 4.0
query expect_fallback(row_number needs an ORDER BY in its window) context_declines(a subquery correlated below a Limit is not supported)
select id from t where id in (select id from u where u.v > t.big order by v limit 1)

-- MinSparkVersion: 4.0
query expect_fallback(row_number needs an ORDER BY in its window) context_declines(a subquery correlated below a Limit is not supported)
select id from t where id not in (select id from u where u.v > t.big order by v limit 1)

-- MinSparkVersion: 4.0
query context_declines(not supported)
select id from t where exists (select 1 from (select * from u where u.id = t.id order by v limit 1) q where v > 100)

query context_declines(not supported)
select id, (select max(m) from (select count(v) m from u where u.id = t.id) q) from t

query expect_error(UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.MUST_AGGREGATE_CORRELATED_SCALAR_SUBQUERY) context_declines(a correlated subquery as a key of GROUP BY is not supported)
select count(*) from t group by (select max(v) from u where u.tag = t.name)

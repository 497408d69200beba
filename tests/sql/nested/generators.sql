-- explode, posexplode, inline and stack.
-- Tables: many_rows

query
select named_struct('x',i).x b, array(i,2)[0] c, size(array(i)) e, array_contains(array(i,2), 2) f,
  cardinality(array(1)) k, get(array(i), 3) l, size(split(s,'b')) m from t

query
select struct(i,s) a, array(i, 2) b, struct(i, s).s c from t

query
select id, x from t lateral view outer explode(array(i, i+1)) as x

query
select id, x from t lateral view explode(array(s)) as x

query context_declines(stack(2, 1, i, 2, i + (1)) AS (a, b2) is not supported)
select stack(2, 1, i, 2, i+1) as (a, b2) from t

-- arrays that differ in whether their elements can be NULL
query context_declines(is not supported)
select stack(2, 'first', count(*), c, 'second', 0L, array('1', '2')) as (x1, x2, x3), i from (select i, split(s, 'b') as c from t)
group by 2, 3

query
select s, x from t lateral view explode(split(s, 'b')) as x

query
select id, p, x from t lateral view posexplode(array(i, i+1)) as p, x

query
select id, a, b2 from t lateral view inline(array(struct(i, s), struct(i, s))) as a, b2

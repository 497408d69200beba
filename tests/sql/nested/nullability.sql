-- What can be NULL inside of nested values.
-- Tables: typed_rows

query
select array(1), array(id), array(1, null), array(array(1), array(id)), array(named_struct('a', 1)) from t

query
select named_struct('a', 1), named_struct('a', id, 'b', 'x'), struct(id, 1), named_struct('a', array(1)) from t

query
select if(flag, array(1), array(id)), coalesce(array(id), array(1)), case when flag then array(1) end from t

query
select collect_list(id), collect_set(id), collect_list(struct(id)), max(array(1)), first(struct(id)) from t where id = 1

query
select case when flag then array(1) else array(2L) end, split(name, ','), cast(array(1) as array<bigint>) from t

query
select concat(array(1), array(2, 3)), array(name) || array('x'), reverse(array(id, 1)) from t

query
select array(struct(id, name)).name as a, array(struct(id, name), null).id as b from t

query
select array_union(array(1), array(id)), array_except(array(1), array(id)), sort_array(array(1)) from t

-- NULLs within the elements of one of two arrays
query
select array_union(array(array(1)), array(array(id))) a, array_union(array(array(id)), array(array(1))) b,
    concat(array(array(1)), array(array(id))) c, array(struct(1 as x)) || array(struct(id as x)) d from t

-- and within keys or values of one of two maps
query
select map_concat(map(1, array(1)), map(2, array(id))) a, map_concat(map(array(1), 1), map(array(id, 2), 2)) b,
    map_zip_with(map(array(1), 1), map(array(id, 2), 2), (k, x, y) -> k[0] is null) c,
    map_values(map_concat(map(1, array(1)), map(2, array(id))))[1][0] is null d from t

query
select explode(array(1, 2)) from t

query
select explode(array(id)), 1 from t

query
select inline(array(struct(1 as a, id as b))) from t

query
select array(1) a, named_struct('a', 1) b union all select array(id), named_struct('a', id) from t

query
select a, count(*) from (select array(1) a from t union all select array(id) from t) group by a

query
select * from values (array(1), named_struct('a', 1)), (array(2), named_struct('a', 2))

query
select x.a, y.b from (select array(id) a from t) x left join (select array(1) b, named_struct('q', 1) s) y on x.a =
  y.b

query
select max(x) from (select struct(1 as id) x union all select struct(id) from t)

query
select case when id > 1 then transform_values(map('a', id), (k, v) -> 1) when true then map('a', 1, 'b', null) end m from t

query
select coalesce(if(id > 1, map(id, array(1)), null), map(2, array(null))) m from t where id is not null

-- several distinct aggregates, whose rows Spark repeats with NULLs in place of arrays without NULLs
query
select count(distinct id), count(distinct id % 2), min(array(id)), max(named_struct('q', array(1), 'i', id)) from t

query
select id % 2 k, count(distinct id), count(distinct array(id, 1)), min(map_keys(map('k', id))) from t group by 1

query
select cast(map('a', id, 'b', id % 2) as map<string, bigint>) m, cast(if(id > 1, map(1, array('7')), null) as map<int, array<int>>) n,
  cast(map(1, named_struct('x', id)) as map<int, struct<y: string>>) o from t

query
select reverse(nullif(transform(map_entries(map('a', 1, 'b', null)), e -> named_struct('x', e.value, 's', e.key)),
  if(id = 1, array(named_struct('x', 1, 's', 'a'), null), null))) r,
  filter(if(id = 1, array(named_struct('x', id)), array(named_struct('x', null))), x -> true) f from t

query
select map_filter(if(id = 1, map('k', transform(array(id), e -> named_struct('x', e))), map('k', array(null))), (k, v) -> true) m from t where id is not null

query
select named_struct('a', nullif(array_remove(array(1), 1), array(id)), 'd', id) s, array(nullif(array(1), array(id)), array(null)) a,
  map('k', nullif(array(1), array(id))) m, map_entries(map('k', nullif(array(1), array(id)))) e,
  cast(named_struct('x', nullif(array(1), array(id))) as struct<y: array<int>>) c from t

-- an array whose structs hold no NULL, and values that do
query
select coalesce(array_contains(array(named_struct('i', 1, 's', 'a')), q), false) c, array_position(array(named_struct('i', 1, 's', 'a')), q) p,
  array_remove(array(named_struct('i', 1, 's', 'a')), q) r, array_union(array(named_struct('i', 1, 's', 'a')), array(q)) u,
  array_except(array(named_struct('i', 1, 's', 'a')), array(q)) e, coalesce(arrays_overlap(array(named_struct('i', 1, 's', 'a')), array(q)), false) o
  from (select named_struct('i', id, 's', if(id > 1, null, 'a')) q from t)

-- what is never NULL is not computed to say so
query
select map('a', id, 'a', 1) is null n, named_struct('i', 1) is not null s from t

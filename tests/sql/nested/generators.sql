-- explode, posexplode, inline and stack.

statement
CREATE TEMP VIEW t AS
select id, cast(if(id % 7 = 0, null, id % 13 - 5) as int) i,
  case when id % 11 = 0 then null when id % 11 = 1 then double('NaN') when id % 11 = 2 then -0.0D
    when id % 11 = 3 then 0.0D else id / 3.0D end d,
  cast(if(id % 5 = 0, null, id * 1.25) as decimal(7,2)) m,
  cast(id * 1000000007.1234 as decimal(20,4)) w,
  case when id % 6 = 0 then null when id % 6 = 1 then '' when id % 6 = 2 then 'abc'
    when id % 6 = 3 then 'Äö%_x' else concat('s', id % 9) end s,
  date_add(date'2020-01-30', cast(id % 50 as int)) day,
  timestamp_ntz'2020-01-01 00:00:00' + make_dt_interval(cast(id as int), 5, cast(id % 60 as int), 1.5) ts,
  id % 3 = 0 b from range(200)

query context_declines(there is no function get)
select named_struct('x',i).x b, array(i,2)[0] c, size(array(i)) e, array_contains(array(i,2), 2) f,
  element_at(array(i,5), 2) h, cardinality(array(1)) k, get(array(i), 3) l, size(split(s,'b')) m from t

query
select struct(i,s) a, array(i, 2) b, struct(i, s).s c from t

query
select id, x from t lateral view outer explode(array(i, i+1)) as x

query
select id, x from t lateral view explode(array(s)) as x

query context_declines(stack(2, 1, i, 2, i + (1)) AS (a, b2) is not supported.)
select stack(2, 1, i, 2, i+1) as (a, b2) from t

query
select s, x from t lateral view explode(split(s, 'b')) as x

query
select id, p, x from t lateral view posexplode(array(i, i+1)) as p, x

query
select id, a, b2 from t lateral view inline(array(struct(i, s), struct(i, s))) as a, b2

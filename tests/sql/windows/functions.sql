-- Window functions, aggregates over windows, FILTER, QUALIFY and named windows.
-- Tables: typed_rows, nested_rows, timestamps

query
select id, row_number() over (order by id) from t

query
select id, rank() over (partition by name order by big desc) r, dense_rank() over (partition by name order by big
  desc) from t

query
select id, sum(id) over (partition by name), sum(id) over (order by id), sum(id) over (order by id rows between 1
  preceding and current row) from t

query
select id, lag(id) over (order by id), lead(id, 2, 0) over (order by id), first_value(id) over (order by id),
  last_value(id) over (order by id) from t

query
select name, sum(sum(id)) over (order by name) from t group by name

-- MinSparkVersion: 4.2
query
select id, name from t qualify row_number() over (partition by name order by id desc) = 1

query
select id, sum(id) over w from t window w as (partition by name order by id)

query
select id, max(big) over (partition by name order by id range between 1 preceding and 1 following) from t where id is
  not null

query
select ntile(2) over (order by id), percent_rank() over (order by id), cume_dist() over (order by id) from t

query
select name, id, sum(id) over (partition by name order by id rows unbounded preceding) from t

-- MinSparkVersion: 4.2
query expect_error(WINDOW_FUNCTION_FRAME_NOT_ORDERED)
select row_number() over () from t

query expect_error(DISTINCT_WINDOW_FUNCTION_UNSUPPORTED)
select sum(distinct id) over () from t

-- MinSparkVersion: 4.0
query expect_error(MISSING_WINDOW_SPECIFICATION)
select count(*) over w from t

query
select sum(id) over (order by id) + 1 as w, w * 2 from t

query
select lag(id, 2) over (order by id) from t

query
select power(id, 2), ceiling(dec), log(2, 8), sin(0), char_length('a'), ucase('a'), lcase('A'), sign(-1),
  dayofmonth(d), std(id) over () from t

query
select id, count(*) over (partition by name) c from t order by c, id

query
select avg(id) over (order by big rows between 1 preceding and 1 following) a from t

-- MinSparkVersion: 4.2
query
select id, sum(id) filter (where big > 10) over (partition by name) a, count(*) filter (where flag) over (partition by
  name) b, avg(dec) filter (where id < 4) over (order by id, name) c, max(d) filter (where name = 'a') over () e from
  t

-- MinSparkVersion: 4.2
query
select id, min(dbl) filter (where id > 1) over (order by id rows between 1 preceding and 1 following) from t

query
select id, max(dbl) over (order by id rows between 1 preceding and current row) from t where id > 1

-- MinSparkVersion: 4.2
query
select id, sum(1) filter (where id > 2) over (order by id) a, count(id, big) filter (where id < 3) over () b,
  collect_list(id) filter (where id > 1) over (partition by name order by id) c, max_by(name, id) filter (where id <
  3) over () e from t where id is not null

-- MinSparkVersion: 4.0
query expect_error(INVALID_SQL_SYNTAX.FUNCTION_WITH_UNSUPPORTED_SYNTAX)
select id, row_number() filter (where id > 1) over (order by id) from t

-- MinSparkVersion: 4.2
query
select id, percentile(id, 0.25) filter (where id > 1) over (partition by flag) p from t

-- MinSparkVersion: 4.2
query
select id, first(name) filter (where big > 10) over (order by id) f, last(name) filter (where flag) over (order by id)
  l from t

-- MinSparkVersion: 4.2
query
select id, first_value(name) filter (where big > 10) ignore nulls over (order by id) f, any_value(id) filter (where
  flag is null) over (order by id desc) l from t

-- MinSparkVersion: 4.2
query
select id, last(id, true) filter (where name <> 'a') over (partition by flag order by id rows between 1 preceding and
  1 following) l from t

-- MinSparkVersion: 4.0
query expect_error(INVALID_SQL_SYNTAX.FUNCTION_WITH_UNSUPPORTED_SYNTAX)
select nth_value(id, 2) filter (where flag) over (order by id) from t

-- MinSparkVersion: 4.2
query
select id, p[0], q[1] from (select id, percentile(big, array(0.25, 0.5)) over (order by id) p,
  percentile(big, array(1, 0)) filter (where flag) over () q from t)

query
select id, max(st) over (order by id) m from n order by st

query expect_error(DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_UNACCEPTED_TYPE)
select sum(id) over (order by name range between 1 preceding and current row) from t

query
select rank() over (order by id), percent_rank() over (order by id), rank() over (partition by name order by id) + 1
  from t

query expect_error(UNSUPPORTED_FEATURE.LATERAL_COLUMN_ALIAS_IN_WINDOW)
select id as a, sum(a) over () from t

query
select sum(id) over (order by dbl range between 1 preceding and current row) from t

query
select sum(id) over (order by big range between 5 preceding and 5 following) from t

query
select count(*) over (order by at range between interval 1 day preceding and current row) from ts

query expect_error(DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_WRONG_COMPARISON)
select sum(id) over (order by id rows between 1 following and 1 preceding) from t

-- MinSparkVersion: 4.2
query expect_error(WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE)
select id from t where row_number() over (order by id) = 1

query expect_error(UNSUPPORTED_EXPR_FOR_OPERATOR)
select id from t order by row_number() over (order by big)

query
select name, rank() over (order by name) r from t group by name order by r

-- MinSparkVersion: 4.2
query expect_error(QUALIFY_REQUIRES_WINDOW_FUNCTION)
select id from t qualify id = 1

-- MinSparkVersion: 4.2
query expect_error(QUALIFY_REQUIRES_WINDOW_FUNCTION)
select name, count(*) c from t group by name qualify c > 1

-- MinSparkVersion: 4.2
query expect_error(MISSING_GROUP_BY)
select name, count(*) c from t group by name qualify rank() over (order by count(*) desc) = 1

-- MinSparkVersion: 4.2
query
select name, count(*) c from t group by name qualify rank() over (order by c desc) = 1

-- MinSparkVersion: 4.2
query
select id as x, row_number() over (order by big) from t qualify x > 1

-- MinSparkVersion: 4.0
query expect_error(MISSING_WINDOW_SPECIFICATION)
select sum(id) over W from t window w as (order by id)

query expect_error(INVALID_SQL_SYNTAX.REPETITIVE_WINDOW_DEFINITION)
select sum(id) over w from t window w as (order by id), w as (order by big)

query
select sum(id) over w from t window a as w, w as (order by id)

query expect_error(INVALID_SQL_SYNTAX.INVALID_WINDOW_REFERENCE)
select sum(id) over a from t window a as b, b as w, w as (order by id)

query expect_error(INVALID_SQL_SYNTAX.UNRESOLVED_WINDOW_REFERENCE)
select sum(id) over a from t window a as nope

query expect_error(UNSUPPORTED_EXPR_FOR_WINDOW)
select upper(name) over (order by id) from t

query context_declines(not supported)
select sum(sum(id) over ()) over () from t

-- Spark raises for rows that the condition excludes
-- MinSparkVersion: 4.2
query expect_error(DIVIDE_BY_ZERO) expect_fallback(FILTER) context_declines(FILTER over a window with an argument that may raise)
select sum(10 div (id - 2)) filter (where id <> 2) over () from t

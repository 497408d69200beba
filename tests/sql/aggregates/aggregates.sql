-- Grouping, HAVING, ROLLUP and CUBE, FILTER, and the aggregate functions.
-- Tables: typed_rows, pairs, nested_rows

query
select count(*), count(1), count(id), count(distinct name), sum(id), avg(dec), min(name), max(d), sum(distinct big),
  count(distinct id, name) from t

query
select name, count(*) from t group by name

query
select name as k, sum(big) s from t group by k having s > 10 order by s desc

query
select name, sum(big) from t group by 1 order by 2

query
select name, sum(big) from t group by all order by all

query
select substr(name,1,1) f, count(*) c from t group by substr(name,1,1) order by c, f

query
select name, count(*) c from t group by name having count(*) > 1

query
select max(id) + 1, max(id) * count(*) from t

query
select sum(id) filter (where flag), count(*) filter (where id > 1) from t

query
select name, flag, count(*), grouping(name), grouping_id() from t group by rollup(name, flag)

query
select name, flag, count(*), grouping_id(name, flag) g from t group by cube(name, flag) order by g, name, flag

query
select name, flag, sum(id) from t group by grouping sets ((name), (flag), ())

query
select name, flag, sum(id) from t group by name, rollup(flag)

-- the keys before GROUPING SETS are the first bits, also a key that is in no set
query
select name, flag, count(*), grouping_id() g from t group by name, flag grouping sets ((flag), (name))

query
select name, flag, grouping(flag) f, grouping_id(name, flag) g, count(*) from t group by name, flag grouping sets ((name))

query
select flag, grouping_id() g, count(*) from t group by name grouping sets ((name), (flag))

-- the keys of an element come before those of the next one
query
select name, flag, id, grouping_id() g from t group by grouping sets ((name), (flag)), id

query
select name, flag, id, grouping_id() g from t group by rollup(name), cube(id, flag)

query context_declines(is not supported; name the columns)
select count(* except (name)), count(* except (id)) filter (where id > 1) from t

query
select name, flag, sum(id) from t group by name, flag with rollup

query
select name, count(*) from t group by name order by max(big)

query
select id, (select max(v) from u where u.id = t.id) m from t

query
select id, (select count(*) from u where u.id = t.id) c from t

query
select id, (select sum(v) + count(*) from u where u.id = t.id) c from t

query
select name, (select count(*) from u) from t

query
select sum(id) as s, s + 1 from t

query
select count(*) from t where false

query
select max(id), count(*) from t where false

query
select name, max(id) from t where false group by name

query
select stddev(id), variance(id), stddev_pop(id), corr(id, big), sort_array(collect_list(id)), count_if(flag), bool_and(flag),
  bool_or(flag) from t

query
select first(id), any_value(name) from t where id = 1

query
select mean(id), std(id) from t

query
select count(*) c, name from t group by name order by c desc, name limit 1

query
select name from t group by name order by count(*) desc, name

query
select case when count(*) > 2 then 'many' else 'few' end from t

query
select sum(case when flag then 1 else 0 end), sum(if(flag, big, 0)) from t

query
select sum(dec), avg(id), avg(big), sum(dbl), sum(dec * 2), avg(dec * dec) from t

query
select cast(sum(id) as decimal(10,2)) / count(*), sum(dec) / sum(id) from t

query
select approx_count_distinct(name) from t

query
select median(id), percentile(id, 0.5) from t

query
select max_by(name, id), min_by(name, id) from t

-- MinSparkVersion: 4.0
query expect_fallback(mode without a direction depends on the order of Spark's hash map)
select mode(name, true), mode(id, false), mode(id) from t where id = 4

query expect_fallback(First of sorted rows is not supported)
select first(id), last(name), collect_list(big), max_by(id, flag) from (select * from t where flag is not null order
  by big desc nulls first)

query expect_fallback(CollectList of sorted rows is not supported)
select name, sum(x), collect_list(dec) from (select dbl * 1e16 x, name, dec from t where id <> 2 order by name, dec
  desc) group by name

query expect_error(MISSING_AGGREGATION)
select name, id from t group by name

query expect_error(MISSING_GROUP_BY)
select name, sum(id) from t

query expect_error(NESTED_AGGREGATE_FUNCTION)
select sum(sum(id)) from t

query expect_error(INVALID_WHERE_CONDITION)
select id from t where sum(id) > 1

query expect_error(GROUP_BY_AGGREGATE)
select id from t group by sum(id)

query expect_error(GROUP_BY_POS_OUT_OF_RANGE)
select id from t group by 3

query expect_error(UNSUPPORTED_GROUPING_EXPRESSION)
select grouping(id) from t group by id

query expect_error(MISSING_GROUP_BY)
select id from t having id > 1

query
select count(*) from t having count(*) > 100

query
select 1 having true

query expect_error(UNRESOLVED_COLUMN.WITH_SUGGESTION)
select name, count(*) from t group by name having id > 1

query
select max(id) m from t group by name having m > 1

query expect_error(MISSING_AGGREGATION)
select id as name, count(*) from t group by name

query
select round(avg(id), 2), cast(avg(dec) as decimal(10,1)) from t

query
select sum(id) * 1.0 / count(*) as r from t group by name order by r

query
select any_value(id) from t where id is null

query
select count(*) from (select distinct name, flag from t)

query
select sum(id) from t group by name, flag order by name, flag

query
select name, sum(id) + 1 as s from t group by name having s > 1 and name is not null order by s + 1

query
select u.id, sum(v), count(distinct tag) from u group by u.id having count(*) >= 1 order by u.id

query
select min(dbl), max(dbl) from t where id = 3

query
select percentile(id, array(0.25, 0.5, 1))[1] as p, name from t group by name

query
select percentile(big, array(0.1))[0] as p from t where id > 99

query
select percentile(id, array(0.5)) filter (where big > 10)[0] as p from t

query expect_error(DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE)
select percentile(id, 1.5) from t

query expect_error(DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE)
select percentile(id, array(0.5, -1)) from t

query expect_error(DATATYPE_MISMATCH.NON_FOLDABLE_INPUT)
select percentile(id, big) from t

query expect_fallback(mode without a direction depends on the order of Spark's hash map)
select mode(name), mode(flag), mode(d) is null from t where id is null or id in (1, 4)

-- MinSparkVersion: 4.0
query
select flag, mode(name, true) as m, mode(big, true) as b, mode(dec, true) as e from t group by flag

query expect_fallback(mode without a direction depends on the order of Spark's hash map)
select mode(id) from t where id > 99

query
select id, (select avg(v) from u where u.id < t.id) m from t

query
select id, (select count(*) from u where u.id <= t.id and u.tag <> t.name) c from t

query
select id, (select max(tag) from u where u.id = t.id and u.v > t.big * 10) m from t

query
select id, (select count(*) + 1 from u where u.v <> t.big having count(*) > 3) m from t

query
select name, n, (select count(*) from u where u.id < n) c from (select name, count(*) n from t group by name) s

query
select id, (select max(x) from (select v - 1 as x from u where u.id < t.id) w) m from t

query
select st, count(*) from n group by st order by st desc

query
select max(struct(id, name)), min(array(id, big)) from t

query
select count(distinct *) from t

query
select name, sum(id) as id from t group by name having sum(id) > 2

query
select name as id, -max(id) as big from t group by name having max(id) > 2 and min(big) > 5

query expect_error(SCALAR_SUBQUERY_IS_IN_GROUP_BY_OR_AGGREGATE_FUNCTION)
select name, (select max(v) from u where u.tag = t.name) from t group by name

query expect_error(UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.UNSUPPORTED_CORRELATED_SCALAR_SUBQUERY)
select id from t order by (select max(v) from u where u.id = t.id), id

query expect_fallback(a scalar subquery at this place is not supported)
select id from t order by (select max(v) from u), id

query expect_error(UNRESOLVED_COLUMN.WITH_SUGGESTION)
select id as a, (select max(v) from u where u.id = a) from t

-- MinSparkVersion: 4.0
query expect_error(INVALID_AGGREGATE_FILTER.NOT_BOOLEAN)
select sum(id) filter (where null) from t

-- MinSparkVersion: 4.0
query expect_error(INVALID_AGGREGATE_FILTER.CONTAINS_AGGREGATE)
select sum(id) filter (where max(id) > 1) from t

query
select count(*) from t having null

query expect_error(UNSUPPORTED_EXPR_FOR_OPERATOR)
select distinct name, count(*) from t group by name order by count(*)

query
select distinct name, count(*) c from t group by name order by c, name

query expect_error(GROUP_BY_POS_AGGREGATE)
select name, max(id) from t group by 2

query expect_error(WRONG_NUM_ARGS.WITHOUT_SUGGESTION)
select if(true, 2), sum(id, 1) from t

query expect_error(WRONG_NUM_ARGS.WITHOUT_SUGGESTION)
select sum(id, 1) from t

query
select count(big + 9223372036854775807) c from t order by c limit 0

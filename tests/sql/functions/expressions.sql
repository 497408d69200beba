-- Operators, conditional expressions and common functions.
-- Tables: typed_rows

query
select id, ID, t.id, t.ID as x from t

query
select id+1, id*2.5, -id, +id, id%2, id/2, id div 2, big-id, dec+1, dec*dec, dec/3, 1-dec, dec+id, dbl*2 from t

query
select id=1, id<>1, id!=2, id<=>null, id<2 and flag, not flag, flag or id>2, id between 1 and 2, id not between 1 and
  2 from t

query
select name like 'a%', name not like '%b', name rlike 'a', name in ('a','c'), name not in ('a',null), id in (1,2) from
  t

query
select case when id=1 then 'one' when id=2 then 'two' else 'many' end, case id when 1 then 10 when 2 then 20L end,
  if(flag, 1, 2.5) from t

-- MinSparkVersion: 4.0
query
select cast(id as string), cast(big as int), cast(dec as double), cast('12' as int), id::bigint, try_cast(name as int)
  from t

query
select distinct name from t

query
select 1 as one where 1 = 0

query
select id + 1 as x, x * 2 as y from t

query
select upper(name), lower(name), length(name), concat(name, 'x', id), name || '-' || id, substring(name, 1, 1),
  trim('  a '), ltrim(' a'), replace(name,'a','b') from t

query
select coalesce(id, 0), nvl(name, 'none'), nullif(id, 1), greatest(id, 2), least(id, 2), ifnull(id, 5), nvl2(id, 1, 2)
  from t

query
select abs(-id), round(dbl, 1), round(dec, 1), ceil(dec), floor(dec), sqrt(id), power(id, 2), exp(0), ln(1), mod(id,
  2), pmod(id, 2), sign(id) from t

query
select id from t where id = '1'

query
select id from t where '2' < id

query
select id + '1' from t

query
select id from t where d > '2020-01-31'

query
select concat(id, name) from t

query
select id is null, id is not null, flag is true, flag is not false, flag is unknown, id is distinct from 1, id is not
  distinct from 1 from t

query
select id, name from t where name is not distinct from null

query
select 1 + 1, 1 + 1.5, 2 * 3L, 7 / 2, 7 div 2, 7 % 4, 1.0 / 3, 0.1 + 0.2, 1e10, 1.5e-5D

query
select 'it''s', "dq", 'a' 'b'

query
select id & 1, id | 2, id ^ 3, ~id from t

query
select hash(id), md5(name) from t

query
select id from t where not (id = 1 or name = 'b')

query
select id from t where (id = 1 and flag) or (id = 1 and name = 'a')

query
select try_add(2147483647, 1), try_divide(1, 0), try_cast('x' as int)

query expect_error(UNRESOLVED_COLUMN.WITH_SUGGESTION)
select nosuch from t

query expect_error(UNRESOLVED_COLUMN.WITH_SUGGESTION)
select t.nosuch from t

query expect_error(TABLE_OR_VIEW_NOT_FOUND)
select id from nosuch

query expect_error(UNRESOLVED_ROUTINE)
select nosuch(id) from t

query expect_error(DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN)
select id from t where id

query expect_error(DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE) context_declines(cannot add values of type boolean)
select id from t where name + flag = 1

query expect_error(WINDOW_FUNCTION_WITHOUT_OVER_CLAUSE)
select row_number() from t

query expect_error(DIVIDE_BY_ZERO)
select 1/0

query expect_error(CAST_INVALID_INPUT)
select cast('x' as int)

query expect_error(ARITHMETIC_OVERFLOW)
select 2147483647 + 1

query expect_error(DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES)
select flag + 1 from t

query expect_error(INVALID_EXTRACT_BASE_FIELD_TYPE)
select id.x from t

query expect_error(WRONG_NUM_ARGS.WITHOUT_SUGGESTION)
select upper(id, 1) from t

query expect_error(CANNOT_RESOLVE_STAR_EXPAND)
select a.* from t

query expect_error(UNRESOLVED_COLUMN.WITH_SUGGESTION)
select id x from t where x = 1

query
select `id`, `t`.`name` from `t`

query
select -1, - 1, -(1), 1 - -1, 2147483648, -2147483648, 9999999999999999999

query
select null = null, null + 1, null and false, not null, coalesce(null, 1)

query
select id from t where id + 1 in (2, 3.5) and name between 'a' and 'b'

query
select case when id > 1 then id end, case when id > 1 then name else 'x' end c from t where case when id > 1 then true
  end

query expect_error(CAST_INVALID_INPUT)
select coalesce(id, big, dec), if(id > 1, id, name) from t

query
select trim('x', 'xax'), btrim('xax', 'x'), ltrim('x','xa'), rtrim('a', 'xa'), trim(both 'x' from 'xax'), div(7,2),
  isnull(1)

query expect_error(DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE)
select '1' + '2'

query
select '1' + 1, '3' * 2.5D

query expect_error(DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE)
select sin(true)

query expect_error(UNRESOLVED_ROUTINE)
select eq(1, 2)

query expect_error(DATATYPE_MISMATCH.DATA_DIFF_TYPES)
select greatest('a', 1)

query expect_error(CAST_INVALID_INPUT)
select coalesce('a', 1)

query expect_error(CAST_INVALID_INPUT)
select case when true then 'a' else 1 end

query expect_error(CAST_INVALID_INPUT)
select id in (1, 'x') from t

query expect_error(CAST_INVALID_INPUT)
select if(true, 'a', 1), nvl(1, 'b')

query
select name like any ('a','b'), name not like all ('a','b'), name like all ('a'), name not like any ('a','b') from t

query
select (id, name), (id + 1, name), (id as a, name), 0.1f = 0.1D, 0.1f, 1.5f + 1 from t

query
select +'1', +id, positive('2') from t

query expect_error(DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE)
select 1 in (1.0, '2'), case when null then 1 end

query expect_error(DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE)
select case when null then 1 end

query expect_error(DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE)
select case when 1 then 2 end

query expect_error(DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN)
select id from t where null

query expect_error(UNRESOLVED_COLUMN.WITHOUT_SUGGESTION)
select nope

query
select 0.0 / (cast(id as decimal(9,2)) / cast(3 as decimal(9,2))) x from t where id > 0

query
select id, cast('9999999999999999999999999.9999999999999' as decimal(38,13)) + cast(id / 1000000.0 as decimal(35,32))
  x, cast('99999999999999999999999999' as decimal(38,0)) / (id + 1.5) y, cast('9999999999999999999.999999999999' as
  decimal(38,12)) * cast(id + 0.25 as decimal(20,6)) z, cast(concat('922337203685477580', id % 10) as decimal(38,2)) v
  from t where id > 0

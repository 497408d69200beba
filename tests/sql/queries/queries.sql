-- SELECT, ORDER BY, LIMIT, VALUES, RANGE and common table expressions.
-- Tables: typed_rows, pairs

query
select * from t

query
select distinct name, flag from t order by name

query
select id from t order by big

query
select id as x from t order by x desc

query
select id as x, name from t order by x + 1 desc nulls last limit 2

query
select id from t order by 1 limit 2 offset 1

query
with c as (select id, name from t) select * from c where id > 1

query
select * from (select id x, name from t) s where x = 1

query
select s.* from (values (1,'a'),(2,'b')) as s(x, y)

query
values (1, 'a'), (2, 'b')

query
select * from values (1, 2.5), (3L, 4)

-- MinSparkVersion: 4.0
query
select * except (name, flag) from t

query
select * from range(5)

query
select id * 2 from range(2, 10, 3) as r

query
select * from range(3) r(x)

query
select id from t order by name nulls last, id desc nulls first

query
select distinct id + 1 as x from t order by x * -1

query
select id, name from t limit 0

query expect_error(ORDER_BY_POS_OUT_OF_RANGE)
select id from t order by 5

query expect_error(INVALID_LIMIT_LIKE_EXPRESSION.IS_NEGATIVE)
select id from t limit -1

query expect_error(INVALID_LIMIT_LIKE_EXPRESSION.IS_UNFOLDABLE)
select id from t limit id

query expect_error(UNRESOLVED_COLUMN.WITH_SUGGESTION)
select distinct id from t order by name

-- MinSparkVersion: 4.0
query expect_error(DUPLICATED_CTE_NAMES)
with c as (select 1), c as (select 2) select * from c

-- MinSparkVersion: 4.0
query expect_error(ASSIGNMENT_ARITY_MISMATCH)
with c(a, b) as (select 1) select * from c

query expect_error(INVALID_INLINE_TABLE.NUM_COLUMNS_MISMATCH)
select * from (values (1, 2), (3)) v

query expect_error(INVALID_INLINE_TABLE.INCOMPATIBLE_TYPES_IN_INLINE_TABLE)
select * from (values (1), (true)) v

-- MinSparkVersion: 4.0
query expect_error(INVALID_INLINE_TABLE.FAILED_SQL_EXPRESSION_EVALUATION)
select * from values (1), (cast('x' as int))

query expect_error(UNRESOLVED_COLUMN.WITH_SUGGESTION)
select id as a, name as a from t order by a

query
select id big from t order by big

query
select concat_ws('-', name, 'x'), lpad(name, 3, '*'), left('abc', 2), right('abc', 2), instr('abc','b'),
  locate('b','abc'), position('b' in 'abc'), split('a,b', ',') from t where id = 1

query
select * from t order by id, name limit 3 offset 2

query
select exists (select 1 from (select * from u where u.id = t.id) q where q.tag > t.name) from t

query
select id, big as id from t order by id

-- MinSparkVersion: 4.0
query expect_error(EXCEPT_OVERLAPPING_COLUMNS)
select * except (id, id) from t

query expect_error(UNRESOLVED_COLUMN.WITH_SUGGESTION)
select distinct name n from t order by name

query
select distinct t.name from t order by t.name

query expect_error(UNRESOLVED_COLUMN.WITH_SUGGESTION)
select distinct upper(name) from t order by upper(name)

query expect_error(INVALID_LIMIT_LIKE_EXPRESSION.DATA_TYPE)
select id from t limit 2L

query expect_error(INVALID_INLINE_TABLE.INCOMPATIBLE_TYPES_IN_INLINE_TABLE)
select * from values (1), ('2')

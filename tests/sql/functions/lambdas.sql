-- Lambdas over arrays: columns of the row, nested ones, and errors in them.

statement
CREATE TEMP VIEW t AS
SELECT * FROM VALUES
  (1, 'a', 10L, CAST(1.5 AS DECIMAL(7,2)), DATE '2020-01-31', 1.5D, true),
  (2, 'b', 20L, CAST(2.25 AS DECIMAL(7,2)), DATE '2020-02-29', CAST('NaN' AS DOUBLE), false),
  (3, NULL, 30L, NULL, DATE '2021-03-15', -0.0D, NULL),
  (4, 'a', NULL, CAST(4.75 AS DECIMAL(7,2)), NULL, 0.0D, true),
  (NULL, 'b', 50L, CAST(-5.50 AS DECIMAL(7,2)), DATE '1999-12-31', NULL, false)
  AS t(id, name, big, dec, d, dbl, flag)

statement
CREATE TEMP VIEW n AS
SELECT id, array(id, id + 1) AS arr, named_struct('x', id, 'y', name) AS st, map('k', id) AS m
  FROM t WHERE id IS NOT NULL

query
select id, transform(arr, x -> x + 1), transform(arr, (x, i) -> x * i + t.id), filter(arr, X -> x > 2) from n t

query
select id, exists(arr, x -> x = 2), forall(arr, x -> x > 1 or x is null), transform(arr, id -> id * 2) a from n

query
select transform(array(st), s -> s.x + id), transform(arr, x -> transform(arr, y -> x * 10 + y)), transform(arr, x ->
  case when x > 2 then 'b' end) from n

query
select id from n where exists(arr, x -> x = id + 1) and not exists(arr, x -> 1 / (x - x) > 0 and false)

query
select size(filter(collect_list(id), x -> x > 1)) s, name from t group by name

query expect_error(UNRESOLVED_COLUMN.WITH_SUGGESTION)
select transform(arr, x -> x + nothing) from n

query expect_error(DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE)
select transform(id, x -> x) from n

query expect_error(INVALID_LAMBDA_FUNCTION_CALL.NUM_ARGS_MISMATCH)
select transform(arr, (x, i, j) -> x) from n

query expect_error(INVALID_LAMBDA_FUNCTION_CALL.DUPLICATE_ARG_NAMES)
select transform(arr, (x, x) -> x) from n

query expect_error(FIELD_NOT_FOUND)
select struct(st.a), struct(st['a']), struct(array(st)[0].a), struct(arr[0]), transform(array(st), x -> struct(x.a,
  id, X)) from n

-- Lambdas over arrays: columns of the row, nested ones, and errors in them.
-- Tables: typed_rows, nested_rows

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

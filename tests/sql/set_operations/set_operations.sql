-- UNION, INTERSECT and EXCEPT, and the types they find.
-- Tables: typed_rows, pairs, nested_rows

query
select id from t union select id from u

query
select id, name from t union all select id, tag from u order by 1, 2

query
select id from t intersect select id from u

query
select id from t except select id from u

query
select id from t except all select id from u

query
select id from t intersect all select id from u

query
select id from t union all select v from u

query
select id from t union all select dec from t

query expect_error(NUM_COLUMNS_MISMATCH)
select id from t union select id, name from t

query
select x from (select 1 x union all select 2) order by x

query
select arr from n union select array(id * 1L) from t

query
select named_struct('a', 1) union all select named_struct('a', id) from t

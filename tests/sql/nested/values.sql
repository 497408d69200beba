-- Arrays, structs and maps: construction, access, generators.
-- Tables: typed_rows, nested_rows, timestamps

query
select explode(arr) from n

query
select id, explode(arr) as e from n

query
select id, posexplode(arr) from n

query
select id, e from n lateral view explode(arr) a as e

query
select id, pos, e from n lateral view outer posexplode(arr) a as pos, e

query
select st.x, st.y, n.st.x, arr[0], m['k'], st from n

query
select st.* from n

query
select struct(id, name), named_struct('a', id), array(1,2,3), array(2, id)[1] from t

query expect_error(FIELD_NOT_FOUND)
select st.z from n

query expect_error(FIELD_NOT_FOUND)
select st['y'], (st).x, array(st)[0].y, struct(st).col1.x from n

query
select distinct arr from n order by arr

query
select cast(arr as array<bigint>), cast(st as struct<a: bigint, b: string>), cast(arr as array<string>) from n

query
select unix_timestamp(at), to_unix_timestamp('2020-01-01 00:00:00'), overlay('abc','X',2), sort_array(array(2,1)),
  cast('a' as char(3)) from ts

query
select cast(array(id) as array<string>), try_cast(array(id, null) as array<tinyint>), size(cast(arr as array<string>))
  from n

query
select id from t where array_contains(array(big, 5L), 5) or array_contains(array(big), id)

-- Set operations over 200 rows with NULL, NaN and -0.0, and over a partitioned table.
-- Tables: many_rows, partitioned_rows

query
select i from t intersect select i from t where b

query
select i, s from t except select i, s from t where b

query
select i from t union all select cast(k as int) from pt

query
select i, i, i + 1 from t union all select 1, id, 2 from pt

query
select i from t union select cast(k as int) from pt

query
select k, count(*) from (select i k from t union all select cast(k as int) from pt) group by k

query
select k, s, sum(n), count(*) c, grouping_id() g from (select i k, s, sum(id) n from t group by i, s union all select
  k, string(p), max(id) from pt group by k, p) group by rollup(k, s)

query
select i from t intersect all select i from t where b

query
select i from t except all select i from t where b

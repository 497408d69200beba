-- Window functions over 200 rows with NULL, NaN and -0.0.
-- Tables: many_rows

query
select lag(i,2) over (partition by b order by id) a, lead(i, 1, 7) ignore nulls over (partition by b order by id) x,
  nth_value(i,2) over (partition by b order by id) n, ntile(3) over (partition by b order by id) nt from t

query
select sum(i) over (partition by b order by id rows between 2 preceding and 1 following) a, sum(i) over (partition by
  b order by day range between 2 preceding and current row) x, first_value(i) over (partition by b order by id) f,
  percent_rank() over (partition by b order by id) pr, sum(m) over (partition by b order by id range between 1.5
  preceding and 2 following) z, avg(m) over (partition by i) am from t

query
select * from (select id, row_number() over (partition by i order by id desc) r from t) where r<=2

query
select id, sum(m) over (partition by i) x, rank() over (order by i) y, count(*) over () c from t

-- MinSparkVersion: 4.2
query
select id, sum(m) filter (where b) over (partition by i) x, count(*) filter (where i > 2) over (order by id) c, max(s)
  filter (where m > 1) over (order by id, s, m rows between 2 preceding and current row) y from t

query
select id, sum(m) over (order by id desc range between 3 preceding and 1 following) x, avg(d) over (partition by b
  order by id rows 2 preceding) y from t

query
select id, lag(i) over (partition by b order by id) - i x, last_value(i) ignore nulls over (partition by b order by
  id) y, sum(i) over (partition by b order by id) / sum(i) over (partition by b) z from t

query
select * from (select id, rank() over (partition by s order by i nulls last, id) r from t) where r <= 3

query
select i, sum(sum(m)) over (order by i) from t group by i

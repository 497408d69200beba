-- Window functions over 200 rows with NULL, NaN and -0.0.

statement
CREATE TEMP VIEW t AS
select id, cast(if(id % 7 = 0, null, id % 13 - 5) as int) i,
  case when id % 11 = 0 then null when id % 11 = 1 then double('NaN') when id % 11 = 2 then -0.0D
    when id % 11 = 3 then 0.0D else id / 3.0D end d,
  cast(if(id % 5 = 0, null, id * 1.25) as decimal(7,2)) m,
  cast(id * 1000000007.1234 as decimal(20,4)) w,
  case when id % 6 = 0 then null when id % 6 = 1 then '' when id % 6 = 2 then 'abc'
    when id % 6 = 3 then 'Äö%_x' else concat('s', id % 9) end s,
  date_add(date'2020-01-30', cast(id % 50 as int)) day,
  timestamp_ntz'2020-01-01 00:00:00' + make_dt_interval(cast(id as int), 5, cast(id % 60 as int), 1.5) ts,
  id % 3 = 0 b from range(200)

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

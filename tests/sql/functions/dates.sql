-- Dates, timestamps and intervals.
-- Tables: typed_rows, timestamps

query
select 1, 'a', null, true, 1.5, 2e0, 10L, date '2020-01-01', timestamp '2020-01-01 00:00:00', X'1F'

query
select d + interval 1 day, d - interval '1' month, d + 1, d - 1, d - date '2020-01-01', date_add(d, 2), add_months(d,
  1) from t

query
select at + interval 1 hour, at - interval 1 month, at + interval '1 02:03:04' day to second from ts

query
select year(d), month(d), day(d), quarter(d), extract(year from d), extract(month from d), dayofweek(d), weekofyear(d)
  from t

query
select id from t where d = timestamp '2020-01-31 00:00:00'

query
select date_trunc('month', timestamp '2020-05-17 10:00:00'), trunc(date '2020-05-17', 'MM'), last_day(date
  '2020-02-01'), datediff(date '2020-02-01', date '2020-01-01')

query
select to_date('2020-01-05'), to_timestamp('2020-01-05 10:11:12'), date('2020-01-05'), cast('2020-01-05' as date),
  int('5'), string(5)

query
select datepart('YEAR', d), date_part('month', d), datepart('doy', d) from t

query
select current_date() = current_date, current_timestamp() is not null

query
select current_timestamp() = now(), now() - current_timestamp(), cast(localtimestamp() as timestamp) = now(),
  (select now()) = now()

query expect_error(INVALID_TYPED_LITERAL)
select date 'x'

query expect_error(DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE)
select interval '1' month - d from t

query
select TIMESTAMP '2020-01-01', DATE '2020-1-1', timestamp '2020-01-01 10:00:00.50', timestamp_ntz '2020-01-01 1:2:3',
  date '2020-02' from t

-- the format of a date is ignored, even NULL
query context_declines(a NULL date format is not supported)
SELECT unix_timestamp(DATE'2020-01-01', CAST(NULL AS STRING)) AS a FROM t

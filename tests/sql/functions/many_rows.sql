-- Functions over 200 rows with NULL, NaN, -0.0, and empty and non-ASCII strings.
-- Tables: many_rows, partitioned_rows

query
select 1 a, 'x' b

query
select id, p, q from pt where p = '1'

query
select cast(i as bigint) a, try_cast(s as int) b, cast(m as double) c, cast(i as string) d, cast(day as timestamp) e
  from t

query
select case when i > 3 then 'x' when i < 0 then s else 'z' end a, if(b, i, 0) c, coalesce(i, 7) d, nullif(i, 3) e,
  nvl2(i, s, 'q') f from t

query
select id from t where i in (1, 2, 3) or s in ('abc', '') or id in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)

query
select id from t where i in (1, id, null)

query
select id from t where day in (date'2020-02-01', date'2020-02-02') and m between 10 and 30.5

query
select id % 3 a, id div 7 b, -i c, abs(i) d, m * w e, m / 3 f, m % 2 g, d * 2 h, i / 2 i2 from t where id > 0

query
select try_add(i, 2147483647) a, i + 1 b, try_divide(i, 0) c, try_subtract(i, 1) d from t

query
select length(s) a, upper(s) b, lower(s) b2, substring(s,2,2) c, concat(s,'x') d, trim(s) e, s || i f,
  replace(s,'a','b') g, lpad(s,5,'*') h, rpad(s, 4) i, instr(s,'b') j, reverse(s) k, repeat(s,2) l, left(s,2) m,
  right(s,1) n, initcap(s) o, ascii(s) p, substring_index(s,'b',1) r, translate(s,'ab','xy') t, concat_ws('-',s,'k')
  u, ltrim(s) v, char_length(s) w from t

query
select s rlike '^a.c' a, regexp_replace(s,'[a-c]','z') b, regexp_extract(s,'(a)(b)',1) c, startswith(s,'a') e,
  contains(s,'b') f, md5(s) g, sha2(s,256) h, crc32(s) i, hash(i, s) j, xxhash64(id) k from t

query tolerance=1e-9
select round(m,1) a, round(d,2) b, floor(d) c, ceil(m) d2, sqrt(abs(i)) e, power(i,2) f, greatest(i,3) g, least(m,2)
  h, sign(m) i2, exp(i) j, ln(id+1) k, log10(id+1) l, bround(m,1) m2, i & 3 n, i | 3 o, i ^ 1 p, ~i q, shiftleft(i,2)
  r, pmod(i,3) s2, hex(id) t2 from t where not isnan(d) or d is null

query
select size(collect_set(i)) a from t

query
select from_unixtime(id) b, timestamp_seconds(id) c, timestamp_millis(id) d, unix_micros(cast(ts as timestamp)) f, day
  + interval 1 month g, day - interval 2 years h, ts + interval 3 months k, cast(ts as timestamp) - interval 1 month
  l, day - date'2020-01-01' m, ts - timestamp_ntz'2020-01-01 00:00:00' n from t

query
select id from t where s like 'a%' or s like '_b_' or s like '%b%' or s not like 's%_'

query
select date_add(day, 3) a, year(day) c, month(day) d, dayofmonth(day) e, quarter(day) f, weekofyear(day) g,
  dayofweek(day) h, last_day(day) i, datediff(day, date'2020-02-01') j, trunc(day, 'MM') k from t

query
select nanvl(d, 0) a, isnan(d) b, coalesce(i, id, 0) c, ifnull(s, 'n') d2, d <=> null e, nullif(s, '') g from t

query
select id from t order by id limit 5 offset 3

query
select id, s, d from t order by d desc nulls first, s nulls last, id limit 30

query
select id from t where b order by day desc, id desc

query
select id from t order by id desc offset 190

statement partitioned_by(p, q)
CREATE TEMP VIEW pt AS
select id, if(id % 9 = 8, null, cast(id % 4 as int)) k, cast(id % 3 as string) p,
  if(id % 5 = 0, null, date_add(date'2021-01-01', cast(id % 2 as int))) q from range(60)

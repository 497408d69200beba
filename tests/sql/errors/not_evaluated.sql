-- Arguments that Spark does not evaluate raise no error
-- Config: spark.sql.ansi.enabled=true,false

statement
CREATE TEMP VIEW t AS SELECT * FROM VALUES
  (1, array(1, 2), CAST(NULL AS ARRAY<INT>), DATE'2020-01-01', 3),
  (2147483647, array(), array(5), CAST(NULL AS DATE), 2147483647),
  (NULL, NULL, NULL, NULL, -2147483648) AS t(i, a, n, d, big)

-- a part of a struct or an array that is taken out leaves the others alone
query
SELECT named_struct('x', i, 's', a[7]).x AS x, array(i, a[7])[0] AS y FROM t

-- all branches have one value
query
SELECT CASE WHEN a[7] > 1 THEN i ELSE i END AS x, CASE WHEN a[7] > 1 THEN 'a' WHEN a[8] > 1 THEN 'a' ELSE 'a' END AS y,
  IF(a[7] > 1, array(1, NULL), array(1, NULL)) AS z FROM t

-- the first argument is NULL
query
SELECT array_contains(nullif(a, a), a[7]) AS c FROM t

-- a date past the range of timestamps, beside a NULL
query
SELECT months_between(CAST(NULL AS TIMESTAMP), date_sub(DATE'1970-01-01', big)) AS m FROM t

query
SELECT months_between(CAST(nullif(d, d) AS TIMESTAMP), date_sub(DATE'1970-01-01', big)) AS m FROM t

-- Spark's optimizer takes the rounding to float out
query
SELECT floor(CAST(i AS FLOAT)) AS f, ceil(CAST(big AS FLOAT)) AS c, CAST(CAST(i AS FLOAT) AS DOUBLE) AS d FROM t

-- the first argument of a function of a lambda is NULL
query
SELECT zip_with(nullif(a, a), array(a[7]), (x, y) -> x) AS z, map_zip_with(map_from_arrays(nullif(a, a), a), map(a[7], i), (k, x, y) -> y) AS m,
  aggregate(nullif(a, a), a[7], (s, x) -> s + x) AS s FROM t

query
SELECT map_zip_with(IF(i > 2, map('a', i), NULL), map(IF(i > 2, 'b', NULL), i), (k, x, y) -> y) AS m FROM t

query expect_error(NULL_MAP_KEY)
SELECT map_zip_with(map('a', i), map(IF(i > 2, 'b', NULL), i), (k, x, y) -> y) AS m FROM t

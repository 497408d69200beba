-- Conditions and NULLs that constants decide: what is not needed is not evaluated, and nullability stays Spark's.

statement files=1
CREATE TEMP VIEW t AS
SELECT * FROM VALUES (2147483647, true), (NULL, NULL), (1, false) AS t(i, b)

statement files=1
CREATE TEMP VIEW empty AS
SELECT CAST(1 AS INT) AS i, 's' AS s FROM RANGE(3) WHERE id > 5

-- an overflow beside NULL
query
SELECT (i + i) - NULL AS x FROM t

query
SELECT NULL * (i + i) AS x, 1 / 0 > CAST(NULL AS DOUBLE) AS y, pmod(i + i, CAST(NULL AS INT)) AS z FROM t

query
SELECT i + i IS NULL AND false AS x FROM t

query
SELECT i FROM t WHERE i IS NULL OR (i + i > 0 AND false)

query
SELECT true OR i + i > 0 AS x, i + i > 0 OR true AS y FROM t

query
SELECT nullif('', 'AB') AS x FROM t

query
SELECT (('a' LIKE '_b%') AND b) AS x FROM t

query
SELECT named_struct('x', 1, 's', b).x AS x, named_struct('x', 1, 's', b).s AS s FROM t

-- columns of one name
query
SELECT b, b FROM t

query
SELECT count(*) AS n FROM t WHERE false

query
SELECT CASE WHEN true THEN 1Y END AS x FROM t

query
SELECT CASE WHEN b THEN 3 WHEN true THEN 1Y ELSE NULL END AS x FROM t

query
SELECT CASE WHEN b THEN NULL WHEN true THEN 1Y END AS x FROM t

query
SELECT CASE WHEN true THEN b ELSE true END AS x FROM t

query
SELECT IF(true, 1, NULL) AS x FROM t

query
SELECT CASE WHEN true THEN 1 ELSE sum(CAST(b AS INT)) END AS x FROM t

-- nested constants beside no rows
query
SELECT * FROM empty WHERE array_contains(array(1, NULL), i)

query
SELECT * FROM empty WHERE array_contains(array_repeat(i, 2), 1) OR size(array(1)) > i

query
SELECT * FROM empty WHERE named_struct('x', 1).x = i

-- a later branch of CASE that no row reaches
query
SELECT CASE WHEN x > 0 THEN 10 div x WHEN x < 0 THEN 10 div x END AS two,
  CASE WHEN x > 0 THEN 10 div x WHEN x < 0 THEN 1 WHEN x = 0 THEN 0 ELSE 5 div x END AS more,
  coalesce(x, 10 div x, x div 2) AS c FROM (SELECT id + 1 AS x FROM RANGE(9))

-- arguments that a constant one leaves out
query
SELECT trunc(CAST(s AS DATE), 'DAY') AS a FROM (SELECT concat('a', i) AS s FROM t)

query
SELECT trunc(CAST(s AS DATE), NULL) AS a FROM (SELECT concat('a', i) AS s FROM t)

query
SELECT date_trunc('xx', CAST(s AS TIMESTAMP)) AS a FROM (SELECT concat('a', i) AS s FROM t)

query
SELECT elt(1, s, CAST(CAST(s AS INT) AS STRING)) AS a FROM (SELECT concat('a', i) AS s FROM t)

-- if the start of locate is NULL, the result is 0, even if another argument is NULL
query
SELECT locate('a', 'abc', CAST(NULL AS INT)) AS x, locate('a', s, CAST(NULL AS INT)) AS y, locate(CAST(NULL AS STRING), s, CAST(NULL AS INT)) AS z,
  locate(CAST(NULL AS STRING), 'abc', 1) AS n
FROM (SELECT IF(i = 1, 'a', CAST(i AS STRING)) AS s FROM t)

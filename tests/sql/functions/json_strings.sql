-- Functions of JSON strings.
-- Config: spark.sql.ansi.enabled=true,false

statement
CREATE TEMP VIEW t AS SELECT * FROM VALUES
  (1, '{"a":{"b":[1,{"c":"x"}]},"d":1.50,"e":null}'),
  (2, '{"a":1,"a":2,"d":"é\\n"}'),
  (3, '[1,[2,3],{"a":"y"}]'),
  (4, "{'a':'single','d':{\"k\": [1 , 2]}}"),
  (5, '{"a":1'),
  (6, 'not json'),
  (7, ''),
  (8, CAST(NULL AS STRING)),
  (9, '{"d":[1e3,-0,true]} and more')
AS t(id, s)

-- values at paths
query
SELECT id, get_json_object(s, '$.a') AS a, get_json_object(s, '$.a.b[1].c') AS c, get_json_object(s, '$.d') AS d,
  get_json_object(s, '$[1][0]') AS e, get_json_object(s, "$['a']") AS f, get_json_object(s, 'a') AS g
FROM t

-- in a condition, and grouped by
query
SELECT get_json_object(s, '$.d') AS d, count(*) AS n FROM t WHERE get_json_object(s, '$.a') IS NOT NULL GROUP BY 1

-- lengths and names
query
SELECT id, json_array_length(s) AS n, json_object_keys(s) AS k FROM t

-- through each element of an array
query
SELECT id, get_json_object(s, '$.a.b[*]') AS a, get_json_object(s, '$.a.b[*].c') AS b, get_json_object(s, '$[*]') AS c,
  get_json_object(s, '$[*][0]') AS e, get_json_object(s, '$.d[*]') AS f FROM t

-- behind an index, and for names
query
SELECT get_json_object(s, '$[1][*]') AS c, get_json_object(s, '$.a.b[0][*].c') AS b, get_json_object(s, '$.*') AS d, count(*) AS n
FROM t GROUP BY 1, 2, 3

-- several wildcards fall back to Spark
query expect_fallback(several wildcards) context_declines(several wildcards)
SELECT get_json_object(s, '$[*][*]') AS a, get_json_object(s, '$.a.b[*].c[*]') AS b, count(*) AS n FROM t GROUP BY 1, 2

query
SELECT id, get_json_object(replace(s, '"d"', '"d?"'), "$['d?']") AS a FROM t

-- a path from a column falls back to Spark
query expect_fallback(literal) context_declines(must be a literal)
SELECT get_json_object(s, concat('$.', CAST(id AS STRING))) AS a, count(*) AS n FROM t GROUP BY 1

-- several fields at once
query context_declines(json_tuple)
SELECT id, x, y FROM t LATERAL VIEW json_tuple(s, 'a', 'd') AS x, y

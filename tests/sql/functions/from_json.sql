-- Structs of JSON strings.
-- MinSparkVersion: 4.0
-- Config: spark.sql.ansi.enabled=true,false

statement
CREATE TEMP VIEW t AS SELECT * FROM VALUES
  (1, '{"a":1,"b":"x","c":[1,2],"d":{"e":"2020-01-01T00:00:00Z"}}'),
  (2, '{"a":"no number","b":{"k": 1.50}}'),
  (3, '{"a":3} trailing'),
  (4, ''),
  (5, CAST(NULL AS STRING)),
  (6, '[1]'),
  (7, 'garbage'),
  (8, '{"a":5,"B":"other case","c":null,"d":null}')
AS t(id, s)

query
SELECT id, from_json(s, 'a INT, b STRING') AS j, from_json(s, 'struct<a: string>') FROM t

query
SELECT id, j.a + 1 AS a, j.c[0] AS c, j.d.e AS e FROM (SELECT id, from_json(s, 'a INT, c ARRAY<INT>, d STRUCT<e: TIMESTAMP>') AS j FROM t)

query
SELECT from_json(s, 'a INT').a AS a, count(*) AS n FROM t GROUP BY 1

-- maps
statement
CREATE TEMP VIEW m AS SELECT * FROM VALUES
  (1, '{"a":1,"b":2}'), (2, '{"a":null}'), (3, '{}'), (4, '{"a":"x","b":2}'), (5, '[1]'), (6, ''), (7, CAST(NULL AS STRING)), (8, '{"b": {"k": [1, 2.50]}}'), (9, '{"a":1')
AS m(id, s)

query
SELECT id, from_json(s, 'MAP<STRING, INT>') AS j, from_json(s, 'MAP<STRING, STRING>')['b'] AS b, map_keys(from_json(s, 'MAP<STRING, STRING>')) AS k FROM m

query expect_fallback(from_json of map) context_declines(from_json)
SELECT count(from_json(s, 'MAP<STRING, ARRAY<INT>>')) AS n FROM m

query expect_fallback(options) context_declines(from_json)
SELECT max(from_json(s, 'a INT', map('allowComments', 'true')).a) AS a FROM t

query expect_fallback(from_json of) context_declines(from_json)
SELECT count(from_json(s, 'ARRAY<INT>')) AS n FROM t

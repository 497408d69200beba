-- Structs and arrays as JSON strings.
-- MinSparkVersion: 4.0
-- Config: spark.sql.session.timeZone=UTC,America/New_York

statement
CREATE TEMP VIEW t AS SELECT * FROM VALUES
  (1, 'a"\\b', 1.5D, 12.30BD, true, DATE'2020-02-29', TIMESTAMP'2020-02-29 12:34:56.789123', 7),
  (2, 'é\n', DOUBLE('nan'), 0.00BD, false, DATE'0001-01-02', TIMESTAMP'1900-01-01 00:00:00', NULL),
  (3, '', -0.0D, -7.10BD, NULL, NULL, TIMESTAMP'2021-07-01 00:00:00.1', -1),
  (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
AS t(id, s, d, m, b, dt, ts, i)

query
SELECT id, to_json(named_struct('s', s, 'd', d, 'm', m, 'b', b, 'dt', dt, 'ts', ts)) AS j FROM t

query
SELECT id, to_json(array(i, id)) AS a, to_json(array(named_struct('x', i), NULL)) AS b, to_json(named_struct('n', named_struct('i', i))) AS c FROM t

query
SELECT to_json(named_struct('i', i)) AS j, count(*) AS n FROM t GROUP BY 1

-- maps
query
SELECT id, to_json(map('s', s, 'i', CAST(i AS STRING))) AS a, to_json(map(id, m)) AS b, to_json(named_struct('m', map('d', dt))) AS c,
  to_json(array(map('x', ts), NULL)) AS e FROM t

query expect_fallback(keys is not supported) context_declines(keys is not supported)
SELECT to_json(map(dt, i)) AS j FROM t WHERE dt IS NOT NULL

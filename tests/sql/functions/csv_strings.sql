-- Structs of CSV strings, and strings of structs.
-- MinSparkVersion: 4.0
-- Config: spark.sql.ansi.enabled=true,false

statement
CREATE TEMP VIEW t AS SELECT * FROM VALUES
  (1, '1,x,2.5,2020-01-02'), (2, 'no number,"a,b",NaN,2020-13-01'), (3, '3'), (4, ''), (5, CAST(NULL AS STRING)), (6, ' '), (7, ',,,'),
  (8, '8,"","say ""hi""",1970-01-01,too,many'), (9, ' 9 , y ,-Inf,0001-01-01'), (10, '"10","esc \\" q",1e400,2020-1-2'),
  (11, '2147483648,"open,1'), (12, '+12,''q'',Infinity,9999-12-31'), (13, '13;x;y;z'), (14, '14,é😀,1_0,'), (15, '15,\\,,\\')
AS t(id, s)

query context_declines(from_csv)
SELECT id, from_csv(s, 'a INT, b STRING, c DOUBLE, d DATE') AS r FROM t

query context_declines(from_csv)
SELECT id, r.a + 1 AS a, r.b AS b FROM (SELECT id, from_csv(s, 'a INT, b STRING, c DOUBLE, d DATE') AS r FROM t)

query context_declines(from_csv)
SELECT id, from_csv(s, 'a INT, b STRING, c DOUBLE, d DATE').b AS b FROM t

query context_declines(from_csv)
SELECT id, from_csv(s, 'a STRING, b STRING, c DECIMAL(5, 1), d TIMESTAMP, e BIGINT, f BOOLEAN') AS r FROM t

query context_declines(from_csv)
SELECT from_csv(s, 'a STRING').a AS a, count(*) AS n FROM t GROUP BY 1

query context_declines(from_csv)
SELECT id, from_csv(s, 'a INT, b STRING, c STRING', map('sep', ';')) AS r FROM t

query context_declines(from_csv)
SELECT id, from_csv(s, 'a STRING, b STRING', map('nullValue', ' ', 'ignoreLeadingWhiteSpace', 'false')) AS r FROM t WHERE id < 9

query context_declines(from_csv)
SELECT id, from_csv(s, 'a INT, b STRING, c DOUBLE, d DATE', map('mode', 'FAILFAST')) AS r FROM t WHERE id IN (1, 5, 12)

query expect_error(MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION) context_declines(from_csv)
SELECT id, from_csv(s, 'a INT, b STRING, c DOUBLE, d DATE', map('mode', 'FAILFAST')) AS r FROM t WHERE id IN (1, 3)

query context_declines(from_csv)
SELECT id, from_csv(s, 'a INT, d TIMESTAMP', map('timestampFormat', 'yyyy')) AS r FROM t

query expect_fallback(date format) context_declines(from_csv)
SELECT id, from_csv(s, 'a INT, d TIMESTAMP', map('timestampFormat', 'yyyy XXX')) AS r FROM t

query
SELECT id, to_csv(named_struct('a', id, 's', s, 'b', s)), to_csv(struct(s)) AS c FROM t

query
SELECT id, to_csv(named_struct('a', id / 4D, 'b', DATE'2020-01-01' + id, 'c', TIMESTAMP'2020-01-01 00:00:00.12' + make_dt_interval(id), 'd', id > 3,
  'e', CAST(id AS DECIMAL(8, 5)) / 10000000, 'f', CAST(if(id = 3, 'NaN', '-Infinity') AS DOUBLE), 'g', CAST(id AS FLOAT) / 3, 'h', CAST(s AS STRING))) AS c FROM t

query
SELECT id, to_csv(if(id = 2, NULL, named_struct('a', x))) AS c
FROM (SELECT id, element_at(array('', ' ', ' lead', 'trail ', 'a"b', '"', 'a\\b', 'a,"b\\"', 'line\nend', 'cr\rx', '\\', '\t', 'é 😀 ', ',', '#c', '\\"', NULL), CAST(id AS INT)) AS x
  FROM RANGE(1, 18))

query expect_fallback(quoteAll) context_declines(to_csv)
SELECT id, to_csv(named_struct('a', id), map('quoteAll', 'true')) AS c FROM t

-- Casts between all kinds of types, with values at the ends of their ranges.

statement
CREATE TEMP VIEW t AS
SELECT * FROM VALUES
  (1, 1Y, 100, 10000000000L, 1.5D, 2.25F, 12.34BD, ' 42 ', true, DATE'2020-02-29', TIMESTAMP'2020-02-29 12:34:56.789'),
  (2, -1Y, -100, -1L, -0.0D, FLOAT('NaN'), -0.01BD, '-7.5', false, DATE'0001-01-01', TIMESTAMP'1600-01-01 00:00:00'),
  (3, 127Y, 2147483647, 9223372036854775807L, 1e308D, 3.4e38F, 99.99BD, '1e3', NULL, DATE'9999-12-31', TIMESTAMP'9999-12-31 23:59:59.999999'),
  (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (5, 0Y, 0, 0L, DOUBLE('infinity'), FLOAT('-infinity'), 0.00BD, 'true', true, DATE'1970-01-01', TIMESTAMP'1970-01-01 00:00:00') AS t(id, b, i, l, d, f, m, s, o, day, ts)

query
SELECT id, CAST(b AS STRING), CAST(i AS STRING), CAST(l AS STRING), CAST(m AS STRING), CAST(o AS STRING), CAST(day AS STRING), CAST(ts AS STRING) FROM t

query
SELECT id, CAST(d AS STRING), CAST(f AS STRING), CAST(f AS DOUBLE), CAST(d AS FLOAT), CAST(l AS DOUBLE), CAST(i AS FLOAT) FROM t

query
SELECT id, CAST(b AS INT), CAST(i AS BIGINT), CAST(l AS DECIMAL(20, 1)), CAST(b AS DECIMAL(5, 2)), CAST(o AS INT), CAST(o AS DOUBLE), CAST(i AS BOOLEAN), CAST(d AS BOOLEAN) FROM t

query
SELECT id, CAST(m AS INT), CAST(m AS DOUBLE), CAST(m AS DECIMAL(10, 1)), CAST(m AS BOOLEAN), CAST(m AS BIGINT), CAST(m AS DECIMAL(38, 20)) FROM t

query
SELECT id, try_cast(s AS INT), try_cast(s AS DOUBLE), try_cast(s AS DECIMAL(5, 1)), try_cast(s AS BOOLEAN), try_cast(s AS DATE), try_cast(s AS BIGINT) FROM t

query
SELECT id, try_cast(l AS INT), try_cast(i AS TINYINT), try_cast(d AS INT), try_cast(f AS BIGINT), try_cast(m AS DECIMAL(2, 1)), try_cast(d AS DECIMAL(10, 2)) FROM t

query
SELECT id, CAST(day AS TIMESTAMP), CAST(ts AS DATE), CAST(ts AS TIMESTAMP_NTZ), CAST(ts AS BIGINT), CAST(ts AS DOUBLE), CAST(i AS TIMESTAMP) FROM t

query
SELECT CAST(' 2020-1-5 ' AS DATE), CAST('2020' AS DATE), CAST('2020-02' AS DATE), CAST('2020-02-29T01:02:03' AS DATE), try_cast('2020-02-30' AS DATE), try_cast('20200229' AS DATE)

query context_declines(a time without a date as a timestamp depends on the current day)
SELECT s, try_cast(s AS TIMESTAMP) AS a, try_cast(s AS TIMESTAMP_NTZ) AS b, try_cast(s AS DATE) AS c
  FROM VALUES ('2020-01-01'), ('2020-01-01 1:2:3'), ('2020-01-01T00:00:00.1234567Z'), ('2020-01-01 24:00:00'), ('12:30'), ('-0044-03-15'), ('2020-01-01 00:00:00+05:30'), ('epoch'), ('') v(s)

query
SELECT s, try_cast(s AS INT) AS a, try_cast(s AS DOUBLE) AS b, try_cast(s AS DECIMAL(10, 3)) AS c, try_cast(s AS BOOLEAN) AS d
  FROM VALUES ('+5'), ('-'), ('1.'), ('.5'), ('1e2'), ('0x10'), ('NaN'), ('Infinity'), ('-inf'), ('1d'), ('12345678901'), ('yes'), ('T'), ('0'), ('1 2') v(s)

query expect_error(DATATYPE_MISMATCH.CAST_WITH_CONF_SUGGESTION) context_declines(CAST from binary to string is not supported)
SELECT CAST(CAST(X'616263' AS STRING) AS BINARY), CAST('ü' AS BINARY), CAST(X'' AS STRING), CAST(1 AS BINARY), CAST(256S AS BINARY)

-- MinSparkVersion: 4.0
query
SELECT id, i::string || '!', l::double / 2, m::int + 1, '5'::int, NULL::int FROM t

query
SELECT id, CAST(array(b, id) AS ARRAY<STRING>), CAST(array(m) AS ARRAY<DOUBLE>), CAST(named_struct('a', i, 'b', day) AS STRUCT<x: BIGINT, y: STRING>) FROM t

query context_declines(CAST from interval day to second to string is not supported)
SELECT CAST(INTERVAL '1 02:03:04.5' DAY TO SECOND AS STRING), CAST(INTERVAL '26' HOUR AS INTERVAL DAY TO HOUR), INTERVAL '90' MINUTE > INTERVAL '1' HOUR

query expect_error(CAST_INVALID_INPUT)
SELECT CAST(s AS INT) FROM t

query expect_error(CAST_OVERFLOW)
SELECT CAST(l AS INT) FROM t

query expect_error(CAST_OVERFLOW)
SELECT CAST(d AS BIGINT) FROM t

-- MinSparkVersion: 4.0
query expect_error(NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION)
SELECT CAST(m * 1000 AS DECIMAL(3, 1)) FROM t

query expect_error(CAST_INVALID_INPUT)
SELECT CAST(s AS BOOLEAN) FROM t

query expect_error(CAST_INVALID_INPUT)
SELECT CAST(s AS DATE) FROM t

query expect_error(DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION) context_declines(CAST from array<int> to int is not supported)
SELECT CAST(array(1) AS INT) FROM t

query expect_error(DATATYPE_MISMATCH.CAST_WITH_FUNC_SUGGESTION) context_declines(CAST from date to int is not supported)
SELECT CAST(day AS INT) FROM t

-- more digits than Python converts
query expect_error(CAST_INVALID_INPUT)
SELECT CAST(repeat('1', k * 5000) AS BIGINT) AS n FROM VALUES (1), (2) AS v(k)

query
SELECT try_cast(repeat('1', k * 5000) AS BIGINT) AS n, try_cast(concat(repeat('0', k * 5000), '7') AS INT) AS m FROM VALUES (1), (2) AS v(k)

-- Values by formats, all matches of patterns, errors on purpose.

statement
CREATE TEMP VIEW t AS
SELECT * FROM VALUES
  (1, 12.345D, CAST(1234.5 AS DECIMAL(10, 3)), 'a1b22c', '1,234.50', TIMESTAMP_NTZ'2021-03-14 02:30:00'),
  (2, -0.5D, CAST(-7 AS DECIMAL(10, 3)), 'xyz', '-7', TIMESTAMP_NTZ'2021-11-07 01:30:00'),
  (3, CAST('NaN' AS DOUBLE), CAST(0 AS DECIMAL(10, 3)), '', 'x', TIMESTAMP_NTZ'1970-01-01 00:00:00'),
  (NULL, NULL, NULL, NULL, NULL, NULL),
  (-5, 1e6D, CAST(99999.999 AS DECIMAL(10, 3)), '日本7', '', TIMESTAMP_NTZ'2000-02-29 12:00:00.5')
  AS t(i, x, m, s, n, ts)

query
SELECT format_string('%05d|%s|%-8s|%.2f|%%', i, s, s, x) AS a, printf('%,d %x', i, i) AS b FROM t

query
SELECT to_char(m, 'S99,999.000') AS a, to_varchar(i, '999MI') AS b, to_char(m, '$99999.999PR') AS c FROM t

-- MinSparkVersion: 4.1
query
SELECT try_to_number(n, '9,999.99') AS a, try_to_number(n, 'S9') AS b, to_number(CAST(i AS STRING), 'MI99') AS c FROM t

-- MinSparkVersion: 4.1
query expect_error(INVALID_FORMAT.MISMATCH_INPUT)
SELECT to_number(n, '9,999.99') AS a FROM t

query
SELECT regexp_extract_all(s, '([a-z])(\\d+)', 2) AS a, regexp_extract_all(s, '([a-z])') AS b FROM t

-- MinSparkVersion: 4.0
query
SELECT regexp_count(s, '\\d') AS a, regexp_substr(s, '\\d+') AS b, regexp_instr(s, '\\d+') AS c FROM t

query expect_error(INVALID_PARAMETER_VALUE.REGEX_GROUP_INDEX)
SELECT regexp_extract_all(s, '[a-z]') AS a FROM t

query
SELECT s LIKE ALL ('%b%', 'a_b%') AS a, s LIKE ANY ('_y_', 'a%c', NULL) AS b, s NOT LIKE ALL ('_y_', '%_2%', NULL) AS c, s NOT LIKE ANY ('_y_', '%_2%') AS d FROM t

-- MinSparkVersion: 4.3
query
SELECT ceil(x, 1) AS a, floor(m, -1) AS b, ceil(m, 2) AS c, floor(i, -1) AS d FROM t WHERE i <> 3

query
SELECT make_dt_interval(i, 2, 3, 4.5) AS a, make_dt_interval(i) AS b, convert_timezone('America/Los_Angeles', 'Europe/Berlin', ts) AS c FROM t

query
SELECT convert_timezone('Asia/Tokyo', ts) AS a, atanh(x / 1e7D) AS b FROM t

query
SELECT if(i < 10 OR i IS NULL, i, raise_error('too large')) AS a, assert_true(i < 10 OR i IS NULL) IS NULL AS b FROM t

-- MinSparkVersion: 4.0
query expect_error(USER_RAISED_EXCEPTION)
SELECT if(i < 3, s, raise_error(concat('too large: ', i))) AS a FROM t

-- MinSparkVersion: 4.0
query expect_error(USER_RAISED_EXCEPTION)
SELECT i FROM t WHERE assert_true(i < 3, 'no') IS NULL

-- The error class of each call that fails on its data.

statement
CREATE TEMP VIEW odd AS
SELECT 2147483647 AS i, 9223372036854775807L AS l, -9223372036854775808L AS low, -128Y AS tiny, 0 AS zero, 1e300D AS d, double('NaN') AS nan,
  10000000000000000000000000000000000000BD AS dc, 'abc' AS s, '2020-13-45' AS bad, '' AS empty, array(1, 2) AS a, DATE'2020-01-31' AS dt
  FROM RANGE(2)

query expect_error(CAST_INVALID_INPUT)
SELECT to_timestamp(s) AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT to_timestamp(bad) AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT to_date(s) AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT to_date(bad) AS r FROM odd

query expect_error(CANNOT_PARSE_TIMESTAMP)
SELECT to_date(s, 'yyyy-MM-dd') AS r FROM odd

query expect_error(CANNOT_PARSE_TIMESTAMP)
SELECT to_timestamp(bad, 'yyyy-MM-dd') AS r FROM odd

query expect_error(CANNOT_PARSE_TIMESTAMP)
SELECT unix_timestamp(s) AS r FROM odd

query expect_error(CANNOT_PARSE_TIMESTAMP)
SELECT to_unix_timestamp(s) AS r FROM odd

query expect_error(CANNOT_PARSE_TIMESTAMP)
SELECT unix_timestamp(s, 'yyyy-MM-dd') AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT CAST(s AS INT) AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT CAST(s AS BIGINT) AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT CAST(s AS DOUBLE) AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT CAST(s AS FLOAT) AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT CAST(s AS BOOLEAN) AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT CAST(s AS DATE) AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT CAST(s AS TIMESTAMP) AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT CAST(s AS TIMESTAMP_NTZ) AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT CAST(s AS DECIMAL(10, 2)) AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT CAST(s AS SMALLINT) AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT CAST(empty AS INT) AS r FROM odd

query expect_error(CAST_OVERFLOW)
SELECT CAST(l AS INT) AS r FROM odd

query expect_error(CAST_OVERFLOW)
SELECT CAST(i AS SMALLINT) AS r FROM odd

query expect_error(CAST_OVERFLOW)
SELECT CAST(i AS TINYINT) AS r FROM odd

query expect_error(CAST_OVERFLOW)
SELECT CAST(d AS BIGINT) AS r FROM odd

query expect_error(CAST_OVERFLOW)
SELECT CAST(d AS INT) AS r FROM odd

query expect_error(CAST_OVERFLOW)
SELECT CAST(nan AS INT) AS r FROM odd

-- MinSparkVersion: 4.0
query expect_error(NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION)
SELECT CAST(d AS DECIMAL(10, 2)) AS r FROM odd

-- MinSparkVersion: 4.0
query expect_error(NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION)
SELECT CAST(dc AS DECIMAL(10, 2)) AS r FROM odd

query expect_error(CAST_OVERFLOW)
SELECT CAST(dc AS BIGINT) AS r FROM odd

query expect_error(ARITHMETIC_OVERFLOW)
SELECT i + 1 AS r FROM odd

query expect_error(ARITHMETIC_OVERFLOW)
SELECT l + 1 AS r FROM odd

query expect_error(ARITHMETIC_OVERFLOW)
SELECT low - 1 AS r FROM odd

query expect_error(ARITHMETIC_OVERFLOW)
SELECT i * 2 AS r FROM odd

query expect_error(ARITHMETIC_OVERFLOW)
SELECT l * 2 AS r FROM odd

query expect_error(ARITHMETIC_OVERFLOW)
SELECT -low AS r FROM odd

query expect_error(ARITHMETIC_OVERFLOW)
SELECT abs(low) AS r FROM odd

-- MinSparkVersion: 4.0
query expect_error(ARITHMETIC_OVERFLOW)
SELECT abs(tiny) AS r FROM odd

query expect_error(ARITHMETIC_OVERFLOW)
SELECT low div -1 AS r FROM odd

query expect_error(DIVIDE_BY_ZERO)
SELECT 1 / zero AS r FROM odd

-- MinSparkVersion: 4.1
query expect_error(REMAINDER_BY_ZERO)
SELECT i % zero AS r FROM odd

query expect_error(DIVIDE_BY_ZERO)
SELECT i div zero AS r FROM odd

-- MinSparkVersion: 4.1
query expect_error(REMAINDER_BY_ZERO)
SELECT pmod(i, zero) AS r FROM odd

query expect_error(DIVIDE_BY_ZERO)
SELECT d / zero AS r FROM odd

query expect_error(DIVIDE_BY_ZERO)
SELECT dc / zero AS r FROM odd

-- MinSparkVersion: 4.0
query expect_error(NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION)
SELECT dc * dc AS r FROM odd

query expect_error(INVALID_ARRAY_INDEX)
SELECT a[5] AS r FROM odd

query expect_error(INVALID_ARRAY_INDEX)
SELECT a[-1] AS r FROM odd

query expect_error(INVALID_ARRAY_INDEX_IN_ELEMENT_AT)
SELECT element_at(a, 5) AS r FROM odd

query expect_error(INVALID_INDEX_OF_ZERO)
SELECT element_at(a, zero) AS r FROM odd

query expect_error(INVALID_ARRAY_INDEX)
SELECT elt(5, 'a', 'b') AS r FROM odd

query expect_error(INVALID_ARRAY_INDEX)
SELECT elt(zero, 'a', 'b') AS r FROM odd

-- MinSparkVersion: 4.3
query expect_error(DATETIME_FIELD_OUT_OF_BOUNDS.WITHOUT_SUGGESTION)
SELECT make_date(2020, i, 1) AS r FROM odd

-- MinSparkVersion: 4.3
query expect_error(DATETIME_FIELD_OUT_OF_BOUNDS.WITHOUT_SUGGESTION)
SELECT make_timestamp(2020, i, 1, 1, 1, 1) AS r FROM odd

-- MinSparkVersion: 4.3
query expect_error(DATETIME_FIELD_OUT_OF_BOUNDS.WITHOUT_SUGGESTION)
SELECT make_timestamp(2020, 1, 1, 25, 1, 1) AS r FROM odd

-- MinSparkVersion: 4.3
query expect_error(DATETIME_OVERFLOW)
SELECT timestamp_seconds(l) AS r FROM odd

-- MinSparkVersion: 4.3
query expect_error(DATETIME_OVERFLOW)
SELECT timestamp_millis(l) AS r FROM odd

-- MinSparkVersion: 4.0
query expect_error(ILLEGAL_DAY_OF_WEEK)
SELECT next_day(dt, s) AS r FROM odd

-- MinSparkVersion: 4.0
query expect_error(INVALID_PARAMETER_VALUE.START)
SELECT slice(a, zero, 1) AS r FROM odd

-- MinSparkVersion: 4.0
query expect_error(INVALID_PARAMETER_VALUE.LENGTH)
SELECT slice(a, 1, zero - 1) AS r FROM odd

query expect_error(ARITHMETIC_OVERFLOW)
SELECT round(l, -19) AS r FROM odd

query
SELECT round(tiny, -2) AS r FROM odd

-- MinSparkVersion: 4.3
query expect_error(ARITHMETIC_OVERFLOW)
SELECT ceil(d) AS r FROM odd

-- MinSparkVersion: 4.3
query expect_error(ARITHMETIC_OVERFLOW)
SELECT floor(d) AS r FROM odd

query expect_error(ARITHMETIC_OVERFLOW)
SELECT sum(l) AS r FROM odd

query expect_error(ARITHMETIC_OVERFLOW)
SELECT sum(i * 1L * i * i) AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT s + 1 AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT s * 2.5 AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT s = 1 AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT i = s AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT s BETWEEN 1 AND 2 AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT abs(s) AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT sqrt(s) AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT sum(s) AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT avg(s) AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT dt = s AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT dt > bad AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT year(s) AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT hour(s) AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT datediff(s, dt) AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT last_day(s) AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT date_add(s, 1) AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT nullif(i, s) AS r FROM odd

query expect_error(CAST_INVALID_INPUT)
SELECT substring(s, 'x') AS r FROM odd

-- generators stand alone in the select list
query expect_error(UNSUPPORTED_GENERATOR.NESTED_IN_EXPRESSIONS)
SELECT explode(array(1)) + 1

query expect_error(UNSUPPORTED_GENERATOR.NESTED_IN_EXPRESSIONS)
SELECT abs(inline(array(struct(1))))

query expect_error(DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES)
SELECT d div 2 AS r FROM odd

query expect_error(DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE)
SELECT d div d AS r FROM odd

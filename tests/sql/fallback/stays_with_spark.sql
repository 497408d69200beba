-- What kquery_plan leaves to Spark, the reason it gives, and the answer, which stays Spark's.

statement
CREATE TEMP VIEW t AS
SELECT id, id % 3 AS k, CAST(id * 1.5 AS DECIMAL(7, 2)) AS m, concat('s', id % 5) AS s, id / 4D AS x,
  TIMESTAMP'2020-01-01 00:00:00' + make_dt_interval(0, CAST(id AS INT)) AS ts FROM RANGE(30)

query expect_fallback(percentile) context_declines(unknown function percentile_approx)
SELECT k, percentile_approx(m, 0.5) FROM t GROUP BY k

query expect_fallback(mode)
SELECT mode(k) FROM t WHERE k = 1

query expect_fallback(the Java method aesEncrypt) context_declines(unknown function aes_encrypt)
SELECT hex(aes_encrypt(s, '0000111122223333', 'ECB')) AS v, count(*) FROM t GROUP BY 1

query expect_fallback(the Java method aesDecrypt) context_declines(unknown function aes_decrypt)
SELECT CAST(aes_decrypt(aes_encrypt(s, '0000111122223333', 'ECB'), '0000111122223333', 'ECB') AS STRING) AS v, count(*) FROM t GROUP BY 1

-- MinSparkVersion: 4.0
query expect_fallback(the Java method getSentences) context_declines(unknown function sentences)
SELECT k, sentences(CAST(sum(id) AS STRING)) FROM t GROUP BY k

-- MinSparkVersion: 4.0
query expect_fallback(the Java method evaluate of XPath) context_declines(unknown function xpath)
SELECT k, xpath(concat('<a><b>', sum(id), '</b></a>'), 'a/b/text()') FROM t GROUP BY k

-- MinSparkVersion: 4.0
query expect_fallback(date format) context_declines(the date format 'yyyy XXX' is not supported)
SELECT try_to_timestamp(s, 'yyyy XXX') AS x, count(*) FROM t GROUP BY 1

query expect_fallback(FormatNumber) context_declines(format_number: argument 2 cannot be string)
SELECT format_number(x, '#,##0') AS c, count(*) FROM t GROUP BY 1

query expect_fallback(a sequence by months that are not a constant) context_declines(unknown function make_ym_interval)
SELECT sequence(CAST(ts AS DATE), DATE'2020-03-01', make_ym_interval(0, CAST(id AS INT) + 1)) AS c, count(*) FROM t GROUP BY ts, id

query expect_fallback(decimal(38,2)) context_declines(a RANGE frame with an offset over decimal(38,2) is not supported)
SELECT id, count(*) OVER (ORDER BY CAST(m AS DECIMAL(38, 2)) RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM t

query expect_fallback(repartitioning that the query can observe is not supported)
SELECT /*+ REPARTITION(3) */ k, count(*) AS n FROM t GROUP BY k

query expect_fallback(sorting within) context_declines(SORT BY is not supported: the order of partitions is the engine's; use ORDER BY)
SELECT k, id FROM t SORT BY id

query expect_fallback(sketches are not supported) context_declines(unknown function count_min_sketch)
SELECT k, hex(count_min_sketch(s, 0.5D, 0.5D, 1)) FROM t GROUP BY k

query expect_fallback(histogram_numeric) context_declines(unknown function histogram_numeric)
SELECT k, histogram_numeric(x, 3) FROM t GROUP BY k


query expect_fallback(can match nothing) context_declines(can match nothing)
SELECT regexp_extract_all(s, '(s*)', 1) AS v, count(*) FROM t GROUP BY 1

-- a replacement of RE2's takes the tenth group for the first one and a 0
query expect_fallback(two digits) context_declines(two digits)
SELECT regexp_extract_all(s, '(s)(x?)(x?)(x?)(x?)(x?)(x?)(x?)(x?)(.)', 10) AS v, count(*) FROM t GROUP BY 1

-- MinSparkVersion: 4.0
query expect_fallback(collation-aware) context_declines(COLLATE is not supported)
SELECT s COLLATE UTF8_LCASE AS v, count(*) FROM t GROUP BY 1

-- MinSparkVersion: 4.0
query expect_fallback(the Java method) context_declines(unknown function)
SELECT schema_of_variant(parse_json('{"a": ' || k || '}')) AS v, count(*) FROM t GROUP BY 1

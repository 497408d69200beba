-- Strings that are not valid UTF-8: Latin-1 letters, lone continuation bytes, cut characters, overlong forms, surrogates. Results are shown in
-- hexadecimal. tests/functions/test_invalid_strings.py has every function.
-- Format: parquet, orc
-- MinSparkVersion: 4.0

statement files=2
CREATE TEMP VIEW t AS
SELECT id, CAST(id % 4 AS INT) AS n, CAST(b AS STRING) AS s, CAST(c AS STRING) AS u, b FROM VALUES
  (1, X'636166E9206175206C616974', X'636166E9'), (2, X'636166E9', X'636166C3A9'), (3, X'E974E920', X'636166E9'), (4, X'80', X'41'),
  (5, X'61BF62', X'80'), (6, X'FFFE61', NULL), (7, NULL, X'FFFE61'), (8, X'6162E282', X'6162'), (9, X'61F09F9862', X'F09F9880'),
  (10, X'C0AF61', X'C0'), (11, X'61EDA0BDEDB88062', X'61'), (12, X'636166C3A9', X'636166C3A9'), (13, X'63616665', X'636166E9206175206C616974'),
  (14, X'', X'E9'), (15, X'31E9', X'31'), (16, X'636166E9', X'78') AS v(id, b, c)

-- Latin-1 letters are characters of three bytes, as their first byte says
query
SELECT id, length(s), char_length(u), octet_length(s), bit_length(s), ascii(s), instr(s, 'a'), locate('l', s, 2), position(u IN s) FROM t

query
SELECT id, hex(CAST(upper(s) AS BINARY)), hex(CAST(initcap(u) AS BINARY)) FROM t WHERE id <> 11

query
SELECT id, hex(CAST(trim(s) AS BINARY)), hex(CAST(concat(s, '-', u) AS BINARY)), hex(CAST(concat_ws('-', s, u) AS BINARY)), hex(CAST(repeat(s, 2) AS BINARY)),
  hex(CAST(replace(s, 'a', 'bc') AS BINARY)), hex(CAST(substring_index(s, ' ', 1) AS BINARY)), hex(CAST(translate(s, 'ac', 'x') AS BINARY)) FROM t

query
SELECT id, hex(CAST(substring(s, 2, 2) AS BINARY)), hex(CAST(reverse(s) AS BINARY)), hex(CAST(lpad(s, 12, 'x') AS BINARY)), hex(CAST(left(s, 2) AS BINARY)) FROM t WHERE id IN (1, 4, 5, 6, 12, 13)

query
SELECT id FROM t WHERE s LIKE 'caf_'

query
SELECT id FROM t WHERE s LIKE 'caf%' OR s LIKE '%l_it' OR u ILIKE 'CAF_'

query
SELECT id FROM t WHERE s RLIKE '^caf.$' OR regexp_count(s, '.') = 4

query
SELECT id, hex(CAST(regexp_replace(s, '[a-f]', '_') AS BINARY)), hex(CAST(regexp_extract(s, 'f(.)', 1) AS BINARY)), transform(split(s, ' '), x -> hex(CAST(x AS BINARY))) FROM t

query
SELECT id, levenshtein(s, u) FROM t WHERE id NOT IN (1, 3)

query
SELECT id, hex(CAST(format_string('%s|%8s', s, u) AS BINARY)), hex(encode(s, 'UTF-8')), hex(to_binary(s, 'utf-8')), md5(s), crc32(s), hash(s, u), xxhash64(s) FROM t

query
SELECT id, try_cast(s AS INT), try_cast(s AS DATE), try_cast(s AS DOUBLE), try_cast(s AS BOOLEAN), to_json(named_struct('a', s)) FROM t

query expect_error(CAST_INVALID_INPUT)
SELECT CAST(s AS INT) FROM t WHERE id = 15

query
SELECT id FROM t WHERE s = 'café' OR s > 'x' OR u IN ('A', 'x') OR s <=> u

query
SELECT id, hex(CAST(s AS BINARY)) FROM t ORDER BY s DESC, id

query
SELECT id, hex(CAST(s AS BINARY)) FROM t WHERE s IS NOT NULL ORDER BY s, id LIMIT 5

query
SELECT hex(CAST(s AS BINARY)), count(*), max(id) FROM t GROUP BY s

query
SELECT hex(CAST(min(s) AS BINARY)), hex(CAST(max(s) AS BINARY)), count(DISTINCT s), approx_count_distinct(u) FROM t

query context_declines(WITHIN GROUP)
SELECT n, hex(CAST(min(s) AS BINARY)), hex(CAST(max_by(s, id) AS BINARY)), hex(CAST(listagg(s, ',') WITHIN GROUP (ORDER BY s, u) AS BINARY)), count(DISTINCT u),
  transform(sort_array(collect_list(s)), x -> hex(CAST(x AS BINARY))) FROM t GROUP BY n

query
SELECT length(s), count(*), hex(CAST(max(concat(s, 'x')) AS BINARY)) FROM t GROUP BY length(s)

query
SELECT x.id, y.id FROM t x JOIN t y ON x.s = y.u

query
SELECT x.id, y.id FROM t x LEFT JOIN t y ON length(x.s) = length(y.u) AND x.s < y.s

query
SELECT id FROM t WHERE s IN (SELECT u FROM t WHERE n = 1)

query
SELECT id, row_number() OVER (PARTITION BY s ORDER BY u, id), hex(CAST(lag(s) OVER (PARTITION BY n ORDER BY s, id) AS BINARY)), hex(CAST(max(s) OVER (PARTITION BY n) AS BINARY)) FROM t

query
SELECT hex(CAST(x AS BINARY)) FROM (SELECT s AS x FROM t UNION SELECT u FROM t)

query
SELECT hex(CAST(s AS BINARY)), n, count(*) FROM t GROUP BY CUBE(s, n)

query
SELECT id FROM t WHERE s = (SELECT max(s) FROM t)

-- lambdas, arrays, structs and maps with such strings
query
SELECT id, transform(array(s, u), x -> length(x)), size(filter(array(s, u), x -> x > 'b')), exists(array(s), x -> length(x) = 1), hex(CAST(array_max(array(s, u)) AS BINARY)),
  array_position(array(s, u), u), hex(CAST(element_at(map('k', s), 'k') AS BINARY)), hex(CAST(named_struct('a', s).a AS BINARY)) FROM t

query
SELECT id, hex(CAST(word AS BINARY)) FROM t LATERAL VIEW explode(array(s, u)) AS word

-- a cast of binary to a string runs on Spark
query expect_fallback(CAST from binary to string) context_declines(CAST from binary to string)
SELECT id, length(CAST(b AS STRING)) AS n, CAST(b AS STRING) LIKE 'caf_' AS l FROM t

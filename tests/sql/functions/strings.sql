-- Functions of strings: empty ones, NULL, characters of several bytes, positions out of range.

statement
CREATE TEMP VIEW t AS
SELECT * FROM VALUES (1, 'abcabc', 2), (2, '', 0), (3, 'Äöü ß', -2), (4, '😀a😀', 1), (5, NULL, 3), (6, '  pad  ', 5), (7, 'a,b,,c', NULL), (8, 'MiXeD case', 100)
  AS t(id, s, n)

query
SELECT id, length(s), char_length(s), bit_length(s), octet_length(s), ascii(s) FROM t

query
SELECT id, upper(s), lower(s), initcap(s), reverse(s) FROM t

query
SELECT id, substring(s, 2), substring(s, 2, 3), substring(s, -2), substring(s, -100, 99), substring(s, 0, 2), substr(s, n), left(s, n), right(s, n) FROM t

query
SELECT id, trim(s), ltrim(s), rtrim(s), trim('a' FROM s), trim(LEADING 'ab' FROM s), trim(TRAILING 'c' FROM s), btrim(s, 'ac') FROM t

query
SELECT id, lpad(s, 8, '*-'), rpad(s, 8, '*-'), lpad(s, 2, 'x'), rpad(s, n), lpad(s, 5, '') FROM t

query
SELECT id, instr(s, 'a'), locate('a', s), locate('a', s, 2), position('b' IN s), locate('', s), instr(s, '😀') FROM t

query
SELECT id, replace(s, 'a', 'XX'), replace(s, 'bc'), replace(s, '', 'z'), translate(s, 'abc', 'xy'), overlay(s PLACING '__' FROM 2 FOR 1) FROM t

query
SELECT id, concat(s, '-', n), s || s, concat_ws(',', s, CAST(NULL AS STRING), 'z'), repeat(s, n) FROM t WHERE n < 10 OR n IS NULL

query expect_fallback(argument 2 cannot be array<string>) context_declines(array<string> cannot stand where string is needed)
SELECT id, concat_ws('-', array(s, 'q'), id) FROM t

query expect_fallback(SPLIT by a pattern that can match nothing) context_declines(SPLIT by a pattern that can match nothing)
SELECT id, split(s, '') FROM t

query
SELECT id, split(s, ','), split(s, 'b|,', 2), split_part(s, ',', 2), split_part(s, ',', -1), substring_index(s, ',', 2), substring_index(s, ',', -1) FROM t

query
SELECT id, s LIKE 'a%', s LIKE '%c', s LIKE '_b%', s LIKE '%😀', s LIKE '', s ILIKE 'MIXED%', s LIKE 'a\%' FROM t

query
SELECT id, s LIKE ANY ('a%', '%ß'), s LIKE ALL ('a%', '%c'), s NOT LIKE ALL ('x%', 'y%') FROM t

query
SELECT id, s RLIKE '^a', s RLIKE '[0-9]', regexp_replace(s, '[abc]+', '<$0>'), regexp_extract(s, '(a)(b)', 2), regexp_like(s, 'b') FROM t

query
SELECT id, startswith(s, 'a'), endswith(s, 'c'), contains(s, 'bc'), startswith(s, ''), find_in_set('b', s) FROM t

query
SELECT id, md5(s), sha1(s), sha2(s, 256), sha2(s, 512), crc32(s), hash(s), xxhash64(s), base64(CAST(s AS BINARY)), hex(s) FROM t

query
SELECT id, levenshtein(s, 'abc'), soundex(s), space(n), chr(n + 64), elt(2, s, 'b') FROM t WHERE n < 10

query
SELECT id, s < 'b', s = 'abcabc ', s > 'Ä', greatest(s, 'b'), least(s, 'B'), s BETWEEN 'A' AND 'b' FROM t

query
SELECT s, count(*) FROM (SELECT upper(left(s, 1)) AS s FROM t) GROUP BY s

query
SELECT id, s FROM t ORDER BY s DESC, id

query
SELECT id, unhex('C3A4') = CAST('ä' AS BINARY), length(X'C3A4'), CAST(s AS BINARY) FROM t

-- MinSparkVersion: 4.0
query context_declines(CAST from binary to string is not supported)
SELECT id, CAST(X'C3A4' AS STRING), decode(X'C3A4', 'UTF-8'), encode(s, 'UTF-8') FROM t

query
SELECT max(length(s)), min(s), max(upper(s)), sum(length(s)), count(DISTINCT left(s, 1)) FROM t

query
SELECT id, nullif(s, ''), coalesce(nullif(trim(s), ''), 'none'), ifnull(s, '-'), if(s = '', 'empty', s), CASE s WHEN '' THEN 0 WHEN 'abcabc' THEN 1 END FROM t

query
SELECT id, format_number(n, 2), format_number(id * 1234567.891D, 1), bin(n), hex(n) FROM t WHERE id < 5

query
SELECT id, conv(n, 10, 16) FROM t

query
SELECT id, array_join(split(s, ','), ';'), size(split(s, ',')), array_contains(split(s, ','), 'b'), sort_array(split(s, ',')) FROM t

-- unpaired surrogates become question marks
query
SELECT hex('\uD83D'), hex('a\uDE00b'), hex('\uDE00\uD83D'), hex('\uD83D\uD83D\uDE00'), hex('\UFFFFFFFF'), hex('\U00110000'), '\uD83D' = '?'
  FROM t

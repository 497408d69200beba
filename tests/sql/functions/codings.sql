-- Other spellings of strings: URLs, character sets, masks, bases.
-- MinSparkVersion: 4.1
-- Config: spark.sql.ansi.enabled=true,false

statement
CREATE TEMP VIEW t AS SELECT * FROM VALUES
  (1, 'https://user@spark.apache.org:80/docs/a.html?k=v&x=%20y#top', 'a%20b', 'Ab-12'),
  (2, 'http://host', '%zz', '99999999999999999999'),
  (3, 'no url', 'x+y', ''),
  (4, NULL, NULL, NULL)
AS t(id, u, e, s)

query
SELECT id, url_encode(u) AS a, try_url_decode(e) AS b, try_parse_url(u, 'HOST') AS c, try_parse_url(u, 'QUERY', 'k') AS d FROM t

query
SELECT id, parse_url(u, 'PATH') AS a, parse_url(u, 'USERINFO') AS b, url_decode(s) AS c FROM t WHERE id <> 3

query
SELECT id, mask(s) AS a, mask(s, 'L', NULL, '#', '*') AS b, quote(s) AS c, luhn_check(s) AS d, conv(left(s, 3), 16, 2) AS f FROM t

query
SELECT id, encode(s, 'UTF-16') AS a, decode(encode(s, 'utf-8'), 'utf-8') AS b, encode(s, 'US-ASCII') AS c FROM t

query expect_error(CANNOT_DECODE_URL)
SELECT id, url_decode(e) AS a FROM t

query
SELECT bitmap_bucket_number(id * 20000) AS b, bitmap_bit_position(id) AS p, bitmap_count(CAST(s AS BINARY)) AS n FROM t

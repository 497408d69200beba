-- Bitmaps of positions, joined and counted.

statement
CREATE TEMP VIEW t AS
SELECT id, id % 4 AS k, CAST(id * id * 37 AS BIGINT) AS n, CASE WHEN id % 3 = 0 THEN NULL ELSE unhex(hex(id * 1000003)) END AS b
FROM RANGE(180)

query
SELECT k, hex(bitmap_construct_agg(bitmap_bit_position(n))) AS a, bitmap_count(bitmap_construct_agg(n % 100)) AS c FROM t GROUP BY k

query
SELECT k, hex(bitmap_or_agg(b)) AS a, bitmap_count(bitmap_or_agg(b)) AS c FROM t GROUP BY k

-- bitmaps of bitmaps
query
SELECT bitmap_count(bitmap_or_agg(m)) AS c FROM (SELECT k, bitmap_construct_agg(bitmap_bit_position(n)) AS m FROM t GROUP BY k)

-- MinSparkVersion: 4.1
query
SELECT k, hex(bitmap_and_agg(b)) AS a FROM t WHERE id > 3 GROUP BY k

-- no rows
query
SELECT bitmap_count(bitmap_construct_agg(n)) AS a, bitmap_count(bitmap_or_agg(b)) AS b FROM t WHERE id < 0

-- NULLs only
query
SELECT k, bitmap_count(bitmap_construct_agg(CAST(NULL AS BIGINT))) AS a, hex(bitmap_or_agg(CAST(NULL AS BINARY))) AS b FROM t GROUP BY k

query expect_error(INVALID_BITMAP_POSITION)
SELECT bitmap_construct_agg(n - 1000000) AS a FROM t

-- Strings that are said to compare by their bytes.
-- MinSparkVersion: 4.0

statement
CREATE TEMP VIEW t AS SELECT * FROM VALUES ('a', 1), ('A', 2), ('b', 3), (NULL, 4) AS t(s, v)

query context_declines(COLLATE)
SELECT s COLLATE UTF8_BINARY AS k, sum(v) AS n FROM t GROUP BY 1

query context_declines(COLLATE)
SELECT upper(s COLLATE UTF8_BINARY) AS u, s COLLATE UTF8_BINARY = 'a' AS e FROM t ORDER BY v

query
SELECT CAST(v AS STRING COLLATE UTF8_BINARY) AS u, count(*) AS n FROM t GROUP BY 1

query expect_fallback(collat) context_declines(COLLATE)
SELECT count(*) AS n FROM t WHERE s COLLATE UTF8_LCASE = 'a'

-- IN and NOT IN where either side has NULLs, or no rows.

statement
CREATE TEMP VIEW t AS
SELECT * FROM VALUES (1, 'a'), (2, 'b'), (3, NULL), (NULL, 'c'), (NULL, NULL) AS t(k, s)

statement
CREATE TEMP VIEW u AS
SELECT * FROM VALUES (1, 'a'), (2, NULL), (NULL, 'c'), (4, 'd') AS t(k, s)

query
SELECT k FROM t WHERE k NOT IN (SELECT k FROM u)

query
SELECT k FROM t WHERE k NOT IN (SELECT k FROM u WHERE k IS NOT NULL)

query
SELECT k FROM t WHERE k NOT IN (SELECT k FROM u WHERE k > 100)

query
SELECT k FROM t WHERE NOT (k IN (SELECT k FROM u WHERE k > 1))

query
SELECT k FROM t WHERE (k, s) IN (SELECT k, s FROM u)

query
SELECT k, s FROM t WHERE (k, s) NOT IN (SELECT k, s FROM u)

query
SELECT k, s FROM t WHERE (k, s) NOT IN (SELECT k, s FROM u WHERE k = 4)

query
SELECT k, s FROM t WHERE (k, s) NOT IN (SELECT k, s FROM u WHERE k > 100)

query
SELECT k FROM t WHERE k NOT IN (SELECT k FROM u WHERE u.s = t.s)

query
SELECT k FROM t WHERE k IN (SELECT k FROM u WHERE u.s = t.s)

query
SELECT k FROM t WHERE k NOT IN (SELECT k FROM u WHERE k IS NOT NULL) AND s IS NOT NULL

query
SELECT k FROM t WHERE k NOT IN (SELECT k FROM u WHERE k > 1) OR s = 'a'

query
SELECT k, k IN (SELECT k FROM u WHERE k IS NOT NULL) AS x FROM t

query
SELECT k, k IN (SELECT k FROM u) AS x, k NOT IN (SELECT k FROM u) AS y FROM t

query
SELECT k, CASE WHEN k IN (SELECT k FROM u WHERE k IS NOT NULL) THEN 'in' ELSE 'out' END AS x FROM t

query
SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k <=> t.k)

query
SELECT k FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)

query
SELECT k FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.s = t.s)

query
SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k) AND NOT EXISTS (SELECT 1 FROM u WHERE u.s = t.s)

query
SELECT k FROM t WHERE EXISTS (SELECT max(k) FROM u WHERE u.k > 100)

query
SELECT k, (SELECT max(u.s) FROM u WHERE u.k = t.k) AS m FROM t

query
SELECT k, (SELECT count(*) FROM u WHERE u.k = t.k) AS n, (SELECT count(u.s) FROM u WHERE u.k = t.k) AS c FROM t

query
SELECT k FROM t WHERE k = (SELECT min(k) FROM u) OR k = (SELECT max(k) FROM u WHERE false)

query expect_error(PARSE_SYNTAX_ERROR) context_declines(expected an expression, found 'SELECT')
SELECT k FROM t WHERE k > ALL (SELECT 1)

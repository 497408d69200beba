-- Partition columns: their inferred types, NULL, pruning, and files of one partition only.
-- Format: parquet, orc

statement files=2 partitioned_by(p, q)
CREATE TEMP VIEW t AS
SELECT id, concat('v', id % 4) AS s, CAST(id % 3 AS INT) AS p, IF(id % 5 = 0, NULL, concat('q ', id % 2)) AS q FROM RANGE(30)

statement files=1 partitioned_by(day)
CREATE TEMP VIEW u AS
SELECT id AS k, date_add(DATE'2021-01-01', CAST(id % 3 AS INT)) AS day FROM RANGE(9)

query
SELECT * FROM t

query
SELECT p, q, count(*), sum(id), max(s) FROM t GROUP BY p, q

query
SELECT id FROM t WHERE p = 1

query
SELECT id, q FROM t WHERE p IN (0, 2) AND q = 'q 1'

query
SELECT count(*) FROM t WHERE q IS NULL

query
SELECT DISTINCT p FROM t

query
SELECT count(*) FROM t WHERE p = 17

query
SELECT max(p), min(q), count(q) FROM t

query
SELECT id FROM t WHERE p = 1 OR id < 4

query
SELECT day, count(*) FROM u GROUP BY day

query
SELECT k FROM u WHERE day > DATE'2021-01-01' AND year(day) = 2021

query
SELECT t.id, u.day FROM t JOIN u ON t.id = u.k AND t.p = day(u.day) - 1

query
SELECT id, p, lag(id) OVER (PARTITION BY p ORDER BY id) AS before FROM t WHERE q IS NOT NULL

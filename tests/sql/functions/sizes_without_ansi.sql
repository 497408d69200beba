-- The size of NULL outside of ANSI mode, which is -1.
-- Config: spark.sql.ansi.enabled=false

statement
CREATE TEMP VIEW t AS
SELECT id, IF(id % 3 = 0, NULL, array(id, NULL)) AS a, IF(id % 4 = 0, NULL, map(id, 1)) AS m FROM RANGE(20)

query
SELECT id, size(a), cardinality(m), array_size(a), size(array()) FROM t

query
SELECT count(*) FROM t WHERE size(a) > 0

query
SELECT size(m) AS n, count(*) FROM t GROUP BY size(m)

-- Filters above set operations: the filters distinguish 0.0 from -0.0, the set operations do not.

statement
CREATE TEMP VIEW a AS SELECT * FROM VALUES (1, 0.0D), (2, NULL), (3, DOUBLE('NaN')), (4, 1.5D) AS t(k, x)

statement
CREATE TEMP VIEW b AS SELECT * FROM VALUES (1, -0.0D), (2, NULL), (3, DOUBLE('NaN')) AS t(k, x)

query
SELECT * FROM (SELECT x FROM a EXCEPT SELECT x FROM b) WHERE CAST(x AS STRING) IN ('0.0', '1.5')

query
SELECT * FROM (SELECT x FROM a INTERSECT SELECT x FROM b) WHERE CAST(x AS STRING) IN ('0.0', 'NaN')

query
SELECT * FROM (SELECT k, array(x) AS y FROM a INTERSECT SELECT k, array(x) FROM b) WHERE CAST(y[0] AS STRING) = '0.0' AND k < 3

query
SELECT * FROM (SELECT k, x FROM b EXCEPT SELECT k, x FROM a) WHERE CAST(x AS STRING) = '-0.0' OR k > 2

query
SELECT * FROM (SELECT x FROM a EXCEPT ALL SELECT x FROM b) WHERE CAST(x AS STRING) = '0.0'

query
SELECT * FROM (SELECT x FROM a INTERSECT ALL SELECT x FROM b) WHERE CAST(x AS STRING) = '0.0'

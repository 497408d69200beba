-- A set operation holds NULL inside of values where Spark's does.

statement files=1
CREATE TEMP VIEW t AS
SELECT * FROM VALUES (named_struct('x', 1, 's', 'a'), array(1, NULL)), (NULL, NULL),
  (named_struct('x', NULL, 's', 'a'), array(1)) AS t(s, a)

query
SELECT named_struct('x', 1, 's', 'a') AS u FROM t EXCEPT SELECT s FROM t

query
SELECT s AS u FROM t EXCEPT SELECT named_struct('x', 1, 's', 'a') FROM t

query
SELECT s AS u FROM t EXCEPT SELECT s FROM t

query
SELECT array(1) AS u FROM t EXCEPT SELECT a FROM t

query
SELECT a AS u FROM t EXCEPT SELECT array(1) FROM t

query
SELECT a AS u FROM t EXCEPT SELECT a FROM t

query
SELECT named_struct('x', 1, 's', 'a') AS u FROM t EXCEPT ALL SELECT s FROM t

query
SELECT s AS u FROM t EXCEPT ALL SELECT named_struct('x', 1, 's', 'a') FROM t

query
SELECT s AS u FROM t EXCEPT ALL SELECT s FROM t

query
SELECT array(1) AS u FROM t EXCEPT ALL SELECT a FROM t

query
SELECT a AS u FROM t EXCEPT ALL SELECT array(1) FROM t

query
SELECT a AS u FROM t EXCEPT ALL SELECT a FROM t

query
SELECT named_struct('x', 1, 's', 'a') AS u FROM t INTERSECT SELECT s FROM t

query
SELECT s AS u FROM t INTERSECT SELECT named_struct('x', 1, 's', 'a') FROM t

query
SELECT s AS u FROM t INTERSECT SELECT s FROM t

query
SELECT array(1) AS u FROM t INTERSECT SELECT a FROM t

query
SELECT a AS u FROM t INTERSECT SELECT array(1) FROM t

query
SELECT a AS u FROM t INTERSECT SELECT a FROM t

query
SELECT named_struct('x', 1, 's', 'a') AS u FROM t INTERSECT ALL SELECT s FROM t

query
SELECT s AS u FROM t INTERSECT ALL SELECT named_struct('x', 1, 's', 'a') FROM t

query
SELECT s AS u FROM t INTERSECT ALL SELECT s FROM t

query
SELECT array(1) AS u FROM t INTERSECT ALL SELECT a FROM t

query
SELECT a AS u FROM t INTERSECT ALL SELECT array(1) FROM t

query
SELECT a AS u FROM t INTERSECT ALL SELECT a FROM t

query
SELECT named_struct('x', 1, 's', 'a') AS u FROM t UNION SELECT s FROM t

query
SELECT s AS u FROM t UNION SELECT named_struct('x', 1, 's', 'a') FROM t

query
SELECT s AS u FROM t UNION SELECT s FROM t

query
SELECT array(1) AS u FROM t UNION SELECT a FROM t

query
SELECT a AS u FROM t UNION SELECT array(1) FROM t

query
SELECT a AS u FROM t UNION SELECT a FROM t

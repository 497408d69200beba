-- Sums of bigints outside of 64 bits wrap around without ANSI mode.
-- Config: spark.sql.ansi.enabled=false

statement files=2
CREATE TEMP VIEW t AS
SELECT * FROM VALUES
  ('a', -9223372036854775807L), ('a', -9L), ('b', 9223372036854775807L), ('b', 7L), ('c', NULL),
  ('d', -9223372036854775807L), ('d', -1L), ('e', 9223372036854775807L), ('e', 9223372036854775807L), ('e', 9L), ('f', 3L)
AS v(g, l)

query
SELECT g, sum(l) AS s FROM t GROUP BY g

query
SELECT sum(l) AS s, count(DISTINCT g) AS c FROM t

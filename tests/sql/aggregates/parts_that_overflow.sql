-- Sums of parts of a group that exceed 38 digits or 64 bits, while the sum of the group does not; and orders of rows that parts do not have.
-- Config: spark.sql.ansi.enabled=true,false
-- Tables: overflowing_parts

statement files=2
CREATE TEMP VIEW edges AS
SELECT * FROM VALUES
  ('least', -9223372036854775807L, 3), ('least', -1L, 3), ('none', NULL, 1), ('greatest', 9223372036854775806L, 2),
  ('greatest', 1L, 5), ('one', -9223372036854775807L - 1L, 1), ('one', NULL, 2), ('small', 1L, 3)
AS v(g, l, x)

statement files=2
CREATE TEMP VIEW beyond AS
SELECT g, l, x FROM VALUES ('a', -9223372036854775807L, 1), ('a', -9L, 2), ('b', 9223372036854775807L, 3), ('b', 7L, 3),
  ('c', NULL, 7), ('d', -9223372036854775807L, 1), ('d', -1L, 2)
AS v(g, l, x)

query context_declines(try_sum)
SELECT k, grouping_id() AS i, try_sum(d) AS s, try_avg(d) AS a FROM t GROUP BY ROLLUP (k)

query context_declines(try_sum)
SELECT g, k, grouping_id() AS i, try_sum(d) AS s, try_avg(d) AS a, try_sum(l) AS l FROM t GROUP BY CUBE (g, k)

-- one part overflows by itself, and so does the group that is all of it
query context_declines(try_sum)
SELECT k, g, grouping_id() AS i, try_sum(d) FILTER (WHERE x > 1) AS s FROM t GROUP BY GROUPING SETS ((k, g), (k), ())

-- no subgroup overflows
query
SELECT g, grouping_id() AS i, sum(d) AS s FROM t GROUP BY ROLLUP (g)

query
SELECT g, k, grouping_id() AS i, sum(d) AS s FROM t WHERE x IN (1, 3, 5) GROUP BY CUBE (g, k)

-- Spark itself adds up sums of each distinct value
query context_declines(try_sum)
SELECT g, try_sum(d) AS s, count(DISTINCT k) AS c FROM t GROUP BY g

query context_declines(try_sum)
SELECT try_sum(d) AS s, count(DISTINCT k) AS c FROM t

-- here it does not
query context_declines(try_sum)
SELECT try_sum(d) AS s, count(DISTINCT k) AS c, count(DISTINCT g) AS h FROM t

query context_declines(try_sum)
SELECT try_sum(d) AS s, count(DISTINCT k) FILTER (WHERE x < 9) AS c FROM t

query
SELECT g, k, last(x) AS l, collect_list(x) AS c, max_by(x, d % 2) AS m FROM t GROUP BY ROLLUP (g, k)

query
SELECT k, max(f) AS m, min(f + 1) AS n FROM t GROUP BY ROLLUP (k)

query
SELECT k, grouping_id() AS i, count(*) AS c, min(x) AS n, sum(x) AS s FROM t GROUP BY ROLLUP (k)

query
SELECT g, sum(l) AS s, avg(l) AS a FROM edges GROUP BY g

query
SELECT g, sum(l) AS s, count(DISTINCT x) AS c FROM edges GROUP BY g

query
SELECT sum(l) AS s FROM edges WHERE g = 'least'

query
SELECT g, sum(INTERVAL '0 00:00:00.000001' DAY TO SECOND * l) AS s FROM edges WHERE g = 'least' GROUP BY g

query
SELECT g, avg(INTERVAL '0 00:00:00.000001' DAY TO SECOND * l) AS a FROM edges WHERE g <> 'one' GROUP BY g

query context_declines(try_sum)
SELECT g, try_sum(l) AS s FROM beyond GROUP BY g

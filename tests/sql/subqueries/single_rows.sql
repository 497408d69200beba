-- Correlated scalar subqueries that may find several rows, which is an error for the rows that do.

statement
CREATE TEMP VIEW t AS
SELECT id, IF(id % 9 = 4, NULL, id % 5) AS k, id % 4 AS w, IF(id % 7 = 3, NULL, id / 4D) AS x FROM RANGE(40)

statement
CREATE TEMP VIEW u AS
SELECT id, IF(id = 3, NULL, concat('n', id)) AS name, array(id) AS a, id * 1D AS f, id % 2 AS p FROM RANGE(4)

statement
CREATE TEMP VIEW twice AS
SELECT IF(id = 7, NULL, id % 6) AS id, concat('n', id) AS name FROM RANGE(8)

-- MinSparkVersion: 4.0
query context_declines(must be an aggregate without GROUP BY)
SELECT id, (SELECT name FROM u WHERE u.id = t.k) AS n, (SELECT a FROM u WHERE u.id = t.w) AS a FROM t

-- in a condition
-- MinSparkVersion: 4.0
query context_declines(must be an aggregate without GROUP BY)
SELECT id FROM t WHERE (SELECT name FROM u WHERE u.id = t.k) = 'n1'

-- in an aggregate
-- MinSparkVersion: 4.0
query context_declines(must be an aggregate without GROUP BY)
SELECT w, sum(length((SELECT name FROM u WHERE u.id = t.w))) FROM t GROUP BY w

-- NULL keys are equal
-- MinSparkVersion: 4.0
query context_declines(must be an aggregate without GROUP BY)
SELECT id, coalesce((SELECT name FROM u WHERE u.id <=> t.k), 'none') AS n FROM t

-- several keys, floats and expressions among them
-- MinSparkVersion: 4.0
query context_declines(must be an aggregate without GROUP BY)
SELECT id, (SELECT name FROM u WHERE u.f = t.x) AS a, (SELECT name FROM u WHERE u.id = t.w + 1 AND u.p = t.k % 2) AS b FROM t

-- rows that nothing asks for may be there twice
-- MinSparkVersion: 4.0
query context_declines(must be an aggregate without GROUP BY)
SELECT id, (SELECT name FROM twice WHERE twice.id = t.k) AS n FROM t WHERE k > 1

-- two rows
-- MinSparkVersion: 4.0
query expect_error(SCALAR_SUBQUERY_TOO_MANY_ROWS) context_declines(must be an aggregate without GROUP BY)
SELECT id, (SELECT name FROM twice WHERE twice.id = t.k) AS n FROM t

-- MinSparkVersion: 4.0
query expect_fallback(by other conditions than equalities) context_declines(must be an aggregate without GROUP BY)
SELECT id, (SELECT name FROM twice WHERE twice.id = t.k AND length(twice.name) > t.w) AS n FROM t WHERE k > 1

-- Queries of unusual shape.

statement
CREATE TEMP VIEW region AS
SELECT * FROM VALUES (0, 'AFRICA'), (1, 'AMERICA'), (2, 'ASIA'), (3, 'EUROPE'), (4, 'MIDDLE EAST') AS t(r_regionkey, r_name)

statement
CREATE TEMP VIEW nation AS
SELECT * FROM VALUES (0, 'ALGERIA', 0, 'haggle carefully'), (1, 'ARGENTINA', 1, 'al foxes promise'), (2, 'BRAZIL', 1, 'y alongside'),
  (3, 'CANADA', 1, 'eas hang ironic'), (5, 'ETHIOPIA', 0, 'ven packages wake'), (8, 'INDIA', 2, 'ss excuses cajole'), (6, 'FRANCE', 3, 'refully final'),
  (7, 'GERMANY', 3, 'l platelets'), (10, 'IRAN', 4, 'efully alongside'), (12, 'JAPAN', 2, 'ously final'), (24, 'UNITED STATES', 1, 'y final packages')
  AS t(n_nationkey, n_name, n_regionkey, n_comment)

statement
CREATE TEMP VIEW customer AS
SELECT id AS c_custkey, concat('Customer#', id) AS c_name, id % 25 AS c_nationkey, CAST(id * 37.5 - 400 AS DECIMAL(12, 2)) AS c_acctbal FROM RANGE(40)

statement
CREATE TEMP VIEW orders AS
SELECT id AS o_orderkey, id * 7 % 50 AS o_custkey, CAST(id * 31 % 97 * 10.25 AS DECIMAL(12, 2)) AS o_totalprice FROM RANGE(80)

statement
CREATE TEMP VIEW lineitem AS
SELECT id * 3 % 90 AS l_orderkey, id % 7 AS l_suppkey, CAST(id % 50 AS DECIMAL(12, 2)) AS l_quantity, CAST(id % 11 / 100.0 AS DECIMAL(12, 2)) AS l_discount,
  element_at(array('AIR', 'MAIL', 'SHIP'), CAST(id % 3 AS INT) + 1) AS l_shipmode, IF(id % 2 = 0, 'A', 'R') AS l_returnflag FROM RANGE(120)

-- empty result
query
SELECT n_name, count(*) FROM nation WHERE n_nationkey > 1000 GROUP BY n_name

-- empty global aggregate
query
SELECT sum(n_nationkey), count(*), max(n_name) FROM nation WHERE n_nationkey > 1000

-- empty join
query
SELECT * FROM nation JOIN region ON n_regionkey = r_regionkey WHERE r_name = 'nowhere'

-- count only
query
SELECT count(*) FROM lineitem

-- count with filter
query
SELECT count(*) FROM lineitem WHERE l_discount > 0.05

-- count of a join
query
SELECT count(*) FROM orders JOIN customer ON o_custkey = c_custkey

-- constant per row
query
SELECT 1 FROM nation GROUP BY n_regionkey

-- literal groups
query
SELECT 'x' AS x, count(*) FROM nation GROUP BY 1

-- self-join
query
SELECT a.n_name, b.n_name FROM nation a JOIN nation b ON a.n_regionkey = b.n_regionkey AND a.n_nationkey <
  b.n_nationkey

-- self-join of aggregates
query
WITH t AS (SELECT n_regionkey k, count(*) c FROM nation GROUP BY 1) SELECT * FROM t a JOIN t b ON a.k = b.c

-- duplicate names
query
SELECT n_name, n_name, sum(n_nationkey) AS n_name FROM nation GROUP BY n_name

-- names that differ in case
query
SELECT max(n_name) AS A, min(n_name) AS a FROM nation

-- odd names
query
SELECT count(*) AS `a.b`, max(n_name) AS ``, min(n_name) AS `x y` FROM nation

-- cross join
query
SELECT count(*), max(n_name || r_name) FROM nation CROSS JOIN region

-- distinct
query
SELECT DISTINCT l_shipmode, l_returnflag FROM lineitem

-- union
query
SELECT n_name FROM nation UNION ALL SELECT r_name FROM region

-- sorted
query
SELECT o_orderkey, o_totalprice FROM orders ORDER BY o_totalprice DESC, o_orderkey LIMIT 20

-- limit zero
query
SELECT n_name FROM nation ORDER BY n_name LIMIT 0

-- limit and offset
query
SELECT n_name FROM nation ORDER BY n_name LIMIT 5 OFFSET 3

-- having
query
SELECT l_suppkey, sum(l_quantity) q FROM lineitem GROUP BY 1 HAVING q > 1500

-- scalar subquery
query
SELECT count(*) FROM orders WHERE o_totalprice > (SELECT avg(o_totalprice) FROM orders)

-- not in
query
SELECT count(*) FROM customer WHERE c_custkey NOT IN (SELECT o_custkey FROM orders)

-- exists
query
SELECT count(*) FROM orders WHERE EXISTS (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey)

-- left join with nulls
query
SELECT c_custkey, count(o_orderkey) FROM customer LEFT JOIN orders ON c_custkey = o_custkey GROUP BY 1

-- full join
query
SELECT count(*), count(a), count(b) FROM (SELECT n_nationkey a FROM nation) x FULL JOIN (SELECT n_nationkey + 10 b
  FROM nation) y ON a = b

-- the same table many times
query
SELECT max(n_name) m FROM nation UNION ALL SELECT max(n_name) m FROM nation UNION ALL SELECT max(n_name) m FROM nation
  UNION ALL SELECT max(n_name) m FROM nation UNION ALL SELECT max(n_name) m FROM nation UNION ALL SELECT max(n_name) m
  FROM nation

-- no table
query
SELECT 1 AS a, 'b' AS b

-- values
query
SELECT k, sum(v) FROM VALUES (1, 2), (1, NULL), (NULL, 3) AS t(k, v) GROUP BY k

-- range
query
SELECT id % 3 AS k, sum(id) FROM range(1000) GROUP BY 1

-- window
query
SELECT n_name, rank() OVER (PARTITION BY n_regionkey ORDER BY n_name) r FROM nation

-- rollup
query
SELECT n_regionkey, n_name, count(*) FROM nation GROUP BY ROLLUP (n_regionkey, n_name)

-- lateral view
query
SELECT c, count(*) FROM nation LATERAL VIEW explode(split(n_comment, ' ')) t AS c GROUP BY c

-- intersect
query
SELECT n_regionkey FROM nation INTERSECT SELECT r_regionkey FROM region

-- unused columns of a star
query
SELECT count(*) FROM (SELECT * FROM lineitem JOIN orders ON l_orderkey = o_orderkey)

-- random
query expect_fallback(random numbers are not supported) context_declines(unknown function rand)
SELECT count(*) FROM (SELECT rand(3) AS r FROM nation) WHERE r >= 0

-- nondeterministic beside
query expect_fallback(ids that depend on Spark's partitions are not supported) context_declines(unknown function monotonically_increasing_id)
SELECT count(*), monotonically_increasing_id() >= 0 AS b FROM nation GROUP BY b

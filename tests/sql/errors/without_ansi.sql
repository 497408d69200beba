-- Without ANSI, what would be an error is NULL or wraps around.
-- Config: spark.sql.ansi.enabled=false
-- Tables: odd_rows, two_hundred_rows

-- casts of garbage
query
SELECT CAST(s AS INT), CAST(s AS DATE), CAST(s AS DECIMAL(3, 1)), CAST(f AS INT), CAST(k * 100000 AS TINYINT), k / 0,
  k % 0, k + 2147483647 FROM t

-- decimals
query
SELECT CAST(m * 1000 AS DECIMAL(4, 2)), sum(m * 1e36BD) FROM t GROUP BY m

-- sums
query
SELECT sum(id * 9223372036854775807) FROM u

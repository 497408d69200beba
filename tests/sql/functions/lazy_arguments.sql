-- Arguments that Spark evaluates only for the rows that need them must not raise for the other rows.

statement
CREATE TEMP VIEW t AS
SELECT * FROM VALUES
  (1, 2.5D, 4.0D, '7'), (2, double('NaN'), 1.0D, '8'), (1, NULL, 0.0D, 'x'), (NULL, 3.0D, 0.0D, 'y'), (1, 0.0D, 5.0D, '9')
  AS t(i, a, b, s)

query
SELECT nanvl(a, 1 / b) AS x FROM t

query
SELECT nanvl(a, a / b + a / b) AS x FROM t

query
SELECT nanvl(CAST(a AS FLOAT), CAST(1 / b AS FLOAT)) AS x FROM t

query
SELECT elt(i, s, CAST(CAST(s AS INT) AS STRING)) AS x FROM t

query
SELECT nanvl(a, 1 / b) AS x FROM t WHERE nanvl(a, 1 / b) > 0

query
SELECT i, elt(i, s, CAST(CAST(s AS INT) AS STRING)) AS x FROM t WHERE elt(i, s, CAST(CAST(s AS INT) AS STRING)) > '7'

query expect_error(DIVIDE_BY_ZERO)
SELECT nanvl(a, 1 / (b - 1)) FROM t

query expect_error(CAST_INVALID_INPUT)
SELECT elt(3 - i, s, CAST(CAST(s AS INT) AS STRING)) FROM t

-- a divisor of zero ends try_divide before the dividend is evaluated; so does NULL
query
SELECT try_divide(CAST(s AS DOUBLE), b) AS x FROM t

-- MinSparkVersion: 4.0
query
SELECT try_mod(CAST(s AS INT), CAST(b AS INT)) AS x, try_divide(CAST(s AS DECIMAL(9, 2)), CAST(b AS DECIMAL(9, 2))) AS y FROM t

query expect_error(CAST_INVALID_INPUT)
SELECT CAST(s AS DOUBLE) / b AS x FROM t WHERE b = 0

-- the start of locate is evaluated first, the count of array_repeat before its element
query expect_error(CAST_INVALID_INPUT)
SELECT locate(CAST(a AS STRING), s, CAST(s AS INT)) AS x FROM t WHERE a IS NULL

query
SELECT locate(s, CAST(1 / b AS STRING), nullif(CAST(b AS INT), 0)) AS x FROM t

query expect_error(DIVIDE_BY_ZERO)
SELECT array_repeat(CAST(s AS INT), CAST(1 / b AS INT)) AS x FROM t WHERE b = 0

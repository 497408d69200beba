-- Variances and higher moments of moving frames, to the last bit: Spark adds the rows of a frame one by one.

statement files=1
CREATE TEMP VIEW t AS
SELECT * FROM VALUES
  (1, 'a', 1.25D), (2, 'a', 2.5D), (3, 'a', 3.75D), (4, 'a', 1e17D), (5, 'a', 0.1D), (6, 'a', 0.2D), (7, 'a', 0.3D),
  (8, 'a', NULL), (9, 'a', -0.7D), (10, 'a', 5.3D), (11, 'a', 1e300D), (12, 'a', 1.1D), (13, 'a', 2.2D), (14, 'a', 3.3D),
  (15, 'b', 7.0D), (16, 'b', 7.0D), (17, 'b', 7.0D), (18, 'b', CAST('NaN' AS DOUBLE)), (19, 'b', 0.0D), (20, 'b', 3.9D)
AS v(i, g, x)

query
SELECT i, skewness(x) OVER (ORDER BY i ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s,
  kurtosis(x) OVER (ORDER BY i ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING) AS k FROM t

query
SELECT i, var_samp(x) OVER (PARTITION BY g ORDER BY i ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS v,
  stddev_pop(x) OVER (PARTITION BY g ORDER BY i ROWS BETWEEN 1 PRECEDING AND 3 FOLLOWING) AS s FROM t

query
SELECT i, skewness(x) OVER (PARTITION BY g ORDER BY i RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS s FROM t WHERE i < 18

query
SELECT i, skewness(x) OVER (PARTITION BY g ORDER BY i) AS s, kurtosis(x) OVER (ORDER BY i ROWS 4 PRECEDING) AS k FROM t

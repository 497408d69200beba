statement files=1
CREATE TEMP VIEW t AS
SELECT * FROM VALUES
  (1, 'a', CAST('6e37' AS DECIMAL(38, 0)), 9223372036854775807L, -0.0D, 1),
  (2, 'a', CAST('-6e37' AS DECIMAL(38, 0)), -9223372036854775807L, 0.0D, 3),
  (1, 'a', CAST('6e37' AS DECIMAL(38, 0)), 5L, -1.0D, 2),
  (2, 'b', CAST('-6e37' AS DECIMAL(38, 0)), -7L, 0.0D, 4),
  (3, 'b', CAST('1' AS DECIMAL(38, 0)), 1L, -0.0D, 5)
AS v(k, g, d, l, f, x)

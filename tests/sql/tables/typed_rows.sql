statement
CREATE TEMP VIEW t AS
SELECT * FROM VALUES
  (1, 'a', 10L, CAST(1.5 AS DECIMAL(7,2)), DATE '2020-01-31', 1.5D, true),
  (2, 'b', 20L, CAST(2.25 AS DECIMAL(7,2)), DATE '2020-02-29', CAST('NaN' AS DOUBLE), false),
  (3, NULL, 30L, NULL, DATE '2021-03-15', -0.0D, NULL),
  (4, 'a', NULL, CAST(4.75 AS DECIMAL(7,2)), NULL, 0.0D, true),
  (NULL, 'b', 50L, CAST(-5.50 AS DECIMAL(7,2)), DATE '1999-12-31', NULL, false)
  AS t(id, name, big, dec, d, dbl, flag)

statement
CREATE TEMP VIEW t AS
SELECT * FROM VALUES
  (1, named_struct('x', 1, 'f', 0.0D, 's', 'a'), array(1, 2), array(0.0D), TIMESTAMP'2021-03-28 00:59:59.999999'),
  (2, named_struct('x', 1, 'f', -0.0D, 's', 'a'), array(1, 2, NULL), array(-0.0D), TIMESTAMP'2021-03-28 01:00:00'),
  (3, named_struct('x', 1, 'f', double('NaN'), 's', 'a'), array(), array(double('NaN'), NULL), TIMESTAMP'1960-01-01 00:00:01'),
  (4, named_struct('x', NULL, 'f', NULL, 's', NULL), array(NULL), array(), TIMESTAMP'2021-03-28 01:04:00'),
  (5, NULL, NULL, NULL, NULL),
  (6, named_struct('x', NULL, 'f', NULL, 's', NULL), array(NULL), array(double('-infinity'), 1D), TIMESTAMP'2021-03-28 01:05:00'),
  (7, named_struct('x', -5, 'f', 1.5D, 's', ''), array(-7), array(double('NaN'), NULL), TIMESTAMP'0001-01-03 00:00:00'),
  (8, named_struct('x', -5, 'f', 1.5D, 's', 'a\0'), array(-7, 3), array(1D), TIMESTAMP'2021-03-28 01:12:00'),
  (9, named_struct('x', -5, 'f', 1.5D, 's', 'a\0b'), array(2147483647), array(-1D), TIMESTAMP'2021-03-28 01:12:00')
  AS t(k, st, a, fa, ts)

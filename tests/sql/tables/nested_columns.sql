statement
CREATE TEMP VIEW t AS
SELECT * FROM VALUES
  (1, array(1, 2, 3), array(10, 20), map('a', 1, 'b', 2), map('b', 20, 'c', 30), array(1.5D, double('NaN'), -0.0D, 0.0D)),
  (2, array(5, NULL, 5), array(7, 8, 9, NULL), map('a', NULL), map('a', 1, 'z', NULL), array(NULL, 2D, 2D)),
  (3, array(), array(1), map(), map('x', 1), array()),
  (4, NULL, array(1), NULL, map('x', 1), NULL),
  (5, array(NULL), NULL, map('', 0, 'é', -7, 'a', 3), NULL, array(double('NaN'))),
  (6, array(9, 8, 7, 6, 5, 4, 3, 2, 1), array(0, 0), map('k', 2147483647), map('k', 1, 'a', 2), array(3D, -1D)),
  (7, array(-3, 2147483647), array(), map('b', 1, 'a', 2), map('b', NULL), array(-0.0D, 0.0D, -0.0D))
  AS rows(k, a, b, m, n, d)

-- Nested and binary values of rows that are in the query itself.
-- Tables: nested_columns

query context_declines(a map without entries has no type)
SELECT t.k, x.* FROM t JOIN (SELECT * FROM VALUES (1, array(1, NULL), map('a', 1.5BD), named_struct('x', 'y', 'z', array(DATE'2020-01-01')), X'00FF'),
  (2, array(), map(), named_struct('x', 'ü', 'z', array()), NULL), (5, NULL, map('é', NULL, '', 2.5BD), named_struct('x', NULL, 'z', array()), X'')
  AS v(i, a, m, s, b)) x ON t.k = x.i

query
SELECT t.k, size(x.m), x.s.z[0], x.a[0] FROM t JOIN (SELECT * FROM VALUES (1, array(TIMESTAMP'2020-01-01 00:00:00.5'), map(1, array(true)), named_struct('x',
  1S, 'z', array(float('NaN'), -0.0F))), (6, NULL, NULL, named_struct('x', NULL, 'z', array(1F)))
  AS v(i, a, m, s)) x ON t.k = x.i

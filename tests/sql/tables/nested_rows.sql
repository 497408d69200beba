statement
CREATE TEMP VIEW n AS
SELECT id, array(id, id + 1) AS arr, named_struct('x', id, 'y', name) AS st, map('k', id) AS m
  FROM t WHERE id IS NOT NULL

statement
CREATE TEMP VIEW u AS
SELECT * FROM VALUES (1, 'x', 100), (1, 'y', 200), (2, 'z', 300), (NULL, 'n', 400), (7, 'q', NULL)
  AS u(id, tag, v)

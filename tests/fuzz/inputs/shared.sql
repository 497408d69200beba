-- statements that another file imports
CREATE TEMPORARY VIEW numbers AS SELECT * FROM VALUES (1, 'a'), (2, 'b, c'), (NULL, ')') AS numbers(n, s);

SELECT a / b FROM VALUES (1, 0), (1, 2) AS t(a, b);

SELECT booleq(true, a), vol('x') FROM VALUES (true), (false) AS t(a);
SELECT 1 AS elsewhere;

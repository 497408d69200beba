-- INTERSECT ALL and EXCEPT ALL of many duplicates.
-- Tables: two_hundred_rows

-- intersect all
query
SELECT k FROM u INTERSECT ALL SELECT CAST(v AS INT) FROM u

-- except all
query
SELECT k FROM u EXCEPT ALL SELECT CAST(v AS INT) FROM u

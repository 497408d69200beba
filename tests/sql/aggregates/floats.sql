-- Floats in keys, lists and set operations: -0.0 equals 0.0, NaN equals NaN.
-- Tables: odd_rows

-- floats in a list
query
SELECT k FROM t WHERE f IN ('NaN', 0.0)

-- narrow floats in a list
query
SELECT k FROM t WHERE CAST(f AS FLOAT) IN (0.0F, 1.5F)

-- floats compared
query
SELECT k, f > 1, f = 'NaN', f = 0.0, f <=> -0.0D FROM t WHERE f >= 0.0D

-- floats grouped
query
SELECT f, count(*) FROM t GROUP BY f

-- floats in set operations
query
SELECT f FROM t INTERSECT (SELECT double('NaN') UNION SELECT -0.0D)

-- zeros of both signs
query
SELECT k, f * 0.0D, f * -0.0D, coalesce(f, 0.0D), coalesce(f, -0.0D) FROM t

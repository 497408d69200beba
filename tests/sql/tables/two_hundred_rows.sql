statement
CREATE TEMP VIEW u AS
SELECT id, CAST(id % 7 AS INT) k, CAST(id % 13 AS STRING) s, CAST(id / 3 AS DECIMAL(10, 2)) m,
  IF(id % 5 = 0, NULL, id % 11) v FROM RANGE(200)

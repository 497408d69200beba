--IMPORT shared.sql
--SET spark.sql.shuffle.partitions = 3, spark.sql.adaptive.enabled=false
--CONFIG_DIM1 spark.sql.codegen.wholeStage=true
--CONFIG_DIM1 spark.sql.codegen.wholeStage=false,spark.sql.codegen.factoryMode=NO_CODEGEN
--CONFIG_DIM2 spark.sql.autoBroadcastJoinThreshold=-1
--CONFIG_DIM2 spark.sql.autoBroadcastJoinThreshold=10485760

-- a comment; with a semicolon
SELECT n, count(*) FROM numbers GROUP BY n ORDER BY n;
SELECT upper(s)
-- a comment inside
FROM numbers WHERE n > 1;
--QUERY-DELIMITER-START
/* one statement; with a semicolon */
SELECT 'x;y' AS c, a + 1 FROM VALUES (1, (2)), (3, (4)) AS t(a, b);
--QUERY-DELIMITER-END
SELECT 1 / (n - 1) FROM numbers;
SELECT no_such_column FROM numbers;
SELECT sum(key), max(value) FROM testdata;
SELECT mapcol[1] FROM mapdata;
SELECT interval '1' month AS i, n FROM numbers;
CREATE TABLE made (x INT) USING parquet;
INSERT INTO made VALUES (1), (2);
SELECT x FROM made;

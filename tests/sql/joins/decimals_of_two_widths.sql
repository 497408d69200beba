-- Decimals too wide for 64 bits find no partner among narrow ones.

statement
CREATE TEMP VIEW narrow AS
SELECT CAST(n AS DECIMAL(9, 2)) AS n FROM VALUES (1.25), (NULL), (-7.00) AS t(n)

statement
CREATE TEMP VIEW wide AS
SELECT CAST(w AS DECIMAL(20, 4)) AS w FROM VALUES (9999999999999999.9999), (1.25), (NULL), (-9999999999999999.9999) AS t(w)

query
SELECT * FROM narrow LEFT SEMI JOIN wide ON n = w

query
SELECT * FROM wide LEFT SEMI JOIN narrow ON n = w

query
SELECT * FROM narrow LEFT ANTI JOIN wide ON n = w

query
SELECT * FROM wide LEFT ANTI JOIN narrow ON n = w

query
SELECT * FROM narrow INNER JOIN wide ON n = w

query
SELECT * FROM wide INNER JOIN narrow ON n = w

query
SELECT * FROM narrow FULL JOIN wide ON n = w

query
SELECT * FROM wide FULL JOIN narrow ON n = w

query
SELECT n FROM narrow UNION SELECT w FROM wide

query
SELECT n FROM narrow WHERE n NOT IN (SELECT w FROM wide WHERE w IS NOT NULL)

-- literals with more digits than Python's decimals have by default
statement
CREATE TEMP VIEW long_numbers AS SELECT CAST(id AS DECIMAL(30, 2)) + 1234567890123456789012345678.00 AS w FROM RANGE(4)

query
SELECT w FROM long_numbers WHERE CAST(w AS DECIMAL(38, 2)) = 1234567890123456789012345679.00

query
SELECT w FROM long_numbers WHERE CAST(w AS DECIMAL(38, 4)) IN (1234567890123456789012345679.0000, 1234567890123456789012345680.0100)

query
SELECT w FROM long_numbers WHERE CAST(w AS DECIMAL(38, 2)) > 1234567890123456789012345679.99

-- MIN, MAX, COUNT, FIRST and grouping of every type.

statement
CREATE TEMP VIEW t AS
SELECT * FROM VALUES
  (1, 1Y, 10S, 100, 1000L, 1.5F, 2.5D, 'a', X'01', DATE'2020-01-01', TIMESTAMP'2020-01-01 00:00:00', TIMESTAMP_NTZ'2020-01-01 00:00:00', true),
  (1, -128Y, -32768S, -2147483648, -9223372036854775808L, -0.0F, -0.0D, '', X'', DATE'0001-01-01', TIMESTAMP'0001-01-03 00:00:00', TIMESTAMP_NTZ'0001-01-01 00:00:00', false),
  (2, 127Y, 32767S, 2147483647, 9223372036854775807L, FLOAT('NaN'), DOUBLE('NaN'), 'ü', X'FF', DATE'9999-12-31', TIMESTAMP'9999-12-30 23:59:59.999999', TIMESTAMP_NTZ'9999-12-31 23:59:59.999999', NULL),
  (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (NULL, 0Y, 0S, 0, 0L, FLOAT('infinity'), DOUBLE('-infinity'), 'A', X'00', DATE'1970-01-01', TIMESTAMP'1970-01-01 00:00:00', TIMESTAMP_NTZ'1970-01-01 00:00:00', true)
  AS t(k, b, s, i, l, f, d, c, x, day, ts, n, o)

query
SELECT k, min(b), max(b), min(s), max(s), min(i), max(i), min(l), max(l) FROM t GROUP BY k

query
SELECT k, min(f), max(f), min(d), max(d) FROM t GROUP BY k

query
SELECT k, min(c), max(c), min(x), max(x), min(o), max(o) FROM t GROUP BY k

query
SELECT k, min(day), max(day), min(ts), max(ts), min(n), max(n) FROM t GROUP BY k

query
SELECT min(b), max(l), min(f), max(d), min(c), max(x), min(day), max(ts), min(n), max(o) FROM t

query
SELECT count(b), count(f), count(c), count(x), count(day), count(o), count(DISTINCT c), count(DISTINCT f), count(DISTINCT x) FROM t

query
SELECT k, sum(b), sum(s), sum(i), avg(b), avg(l), avg(f) FROM t WHERE k IS NOT NULL GROUP BY k

query
SELECT b, count(*) FROM t GROUP BY b

query
SELECT f, d, count(*) FROM t GROUP BY f, d

query
SELECT c, x, count(*) FROM t GROUP BY c, x

query
SELECT day, ts, n, count(*) FROM t GROUP BY day, ts, n

query
SELECT o, count(*) FROM t GROUP BY o

query
SELECT DISTINCT b, s, i, l FROM t

query
SELECT DISTINCT x, o FROM t

query
SELECT bit_and(b), bit_or(s), bit_xor(i), bit_and(l) FROM t

query
SELECT bool_and(o), bool_or(o), every(o), some(o), any(o), count_if(o), count_if(NOT o) FROM t

query
SELECT k, sort_array(collect_list(i)), sort_array(collect_set(c)), size(collect_list(x)) FROM t GROUP BY k

query
SELECT k, max_by(c, i), min_by(day, l), max_by(b, c) FROM t GROUP BY k

query
SELECT first(c, true), last(c, true), any_value(k) IS NULL FROM t WHERE c = 'ü'

query
SELECT k, approx_count_distinct(i), approx_count_distinct(c), approx_count_distinct(d) FROM t GROUP BY k

query
SELECT k, sum(n - n), avg(ts - ts) FROM t GROUP BY k

query
SELECT median(i), percentile(b, 0.25) FROM t

query
SELECT k, count(*), count(1), count(NULL), count(k, b) FROM t GROUP BY k

query
SELECT max(struct(k, c)), min(array(b, s)), max(named_struct('d', day)) FROM t

-- Spark joins the results of count(DISTINCT) and of other aggregates by coalesce(first(..), an empty array)
query
SELECT k, count(DISTINCT i), count(DISTINCT c), sort_array(collect_list(c)), sort_array(collect_set(l)) FROM t GROUP BY k

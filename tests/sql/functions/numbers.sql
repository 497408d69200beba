-- Arithmetic and functions of numbers.

statement
CREATE TEMP VIEW t AS
SELECT * FROM VALUES (1, 7, 3L, 2.5D, 1.25F, 10.50BD), (2, -7, 3L, -2.5D, -0.0F, -3.33BD), (3, 0, -1L, 0.0D, FLOAT('NaN'), 0.00BD), (4, NULL, 5L, NULL, NULL, NULL),
  (5, 2147483646, 9223372036854775806L, 1e18D, 1e20F, 99.99BD), (6, 12, NULL, DOUBLE('-infinity'), 0.5F, 0.01BD) AS t(id, i, l, d, f, m)

query
SELECT id, i + 1, i - l, i * 2L, l / 2, i div 2, i % 4, l % 2, -i, +l FROM t WHERE id < 5

query
SELECT id, m + 1, m - 0.005, m * m, m / 3, m % 2, m div 2, m * i, m / l, m + d FROM t WHERE id < 4

query
SELECT id, d + f, d * 2, d / 3, d % 2, f % 2, -d, -f, f * f FROM t WHERE id < 5

query
SELECT id, abs(i), abs(d), abs(m), sign(i), signum(d), negative(m), positive(l) FROM t

query
SELECT id, mod(i, 3), pmod(i, 3), pmod(-i, 3), pmod(d, 2), pmod(m, 0.7), i % -3 FROM t

query
SELECT id, i & 6, i | 8, i ^ 3, ~i, shiftleft(i, 3), shiftright(i, 1), shiftrightunsigned(i, 1), bit_count(i), getbit(i, 2) FROM t

query tolerance=1e-12
SELECT id, sqrt(abs(i)), cbrt(d), exp(d / 1e17), ln(l), log10(l), log2(l), log(2, l), log1p(l), expm1(m), power(i, 2), pow(d, 0.5) FROM t

query tolerance=1e-12
SELECT id, sin(i), cos(d), tan(m), asin(f), acos(f), atan(d), atan2(i, l), sinh(f), cosh(f), tanh(d), cot(i + 1), sec(i), csc(m + 1), hypot(i, l) FROM t

query
SELECT id, degrees(d), radians(i), factorial(id), width_bucket(d, 0, 10, 5), hex(l), bin(i), rint(d) FROM t

query
SELECT id, ceil(d), floor(d), ceil(m), floor(m), ceil(f), round(d), round(m, 1), round(i, -1), bround(m, 1) FROM t WHERE id < 5

query
SELECT id, greatest(i, l), least(i, d), greatest(m, 1), least(f, 0), greatest(NULL, i), least(d, f, m) FROM t

query
SELECT id, isnan(d), isnan(f), nanvl(f, 0), d IS NULL, d <=> NULL, f = f, f > 1e30, d = -0.0D FROM t

query
SELECT id, i = l, i < d, m > i, l <> f, m = 10.5, d <=> f, i IN (7, 0), m IN (10.50, 0), d IN (2.5, 0) FROM t

-- MinSparkVersion: 4.0
query
SELECT id, try_add(i, 10), try_subtract(-i, 2147483647), try_multiply(l, 10), try_divide(d, i), try_mod(i, 0), try_divide(m, 0) FROM t

query
SELECT id, i + CAST(1 AS TINYINT), CAST(1 AS SMALLINT) * CAST(2 AS TINYINT), 1.0 + 1, 1.5 * 2.25, 7.0 / 2, 1e2 + 1, 3 / 2, 2147483648 - 1 FROM t WHERE id = 1

query
SELECT hash(i, l, d), xxhash64(f, m), hash(CAST(NULL AS INT)), hash(-0.0D) = hash(0.0D) FROM t

query
SELECT id, i BETWEEN 0 AND 7, NOT i > 0, i > 0 AND d > 0, i > 0 OR NULL, (i > 0) IS TRUE, (i > 0) IS NOT FALSE FROM t

query
SELECT id, CASE i WHEN 7 THEN 1.5 WHEN 0 THEN 2 END, nvl2(i, l, 0), nullif(i, 7) FROM t

query context_declines(decode takes 2 argument)
SELECT id, decode(i, 7, 'seven', 0, 'zero', 'other') FROM t

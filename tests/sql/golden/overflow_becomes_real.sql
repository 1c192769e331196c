-- 2^61 * 4 does not fit 64 bits, so it is computed in floats: the type changes, the range does not: U 2^63, B 2^63.
SELECT SUM(CLAMP(year, 0, 2305843009213693952) * 4) FROM people

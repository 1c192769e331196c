-- As counts: U 1; B a row leaves one group and enters another: L1 2, L2 sqrt(2), Linf 1.
SELECT member, COUNT(DISTINCT city) FROM people GROUP BY member

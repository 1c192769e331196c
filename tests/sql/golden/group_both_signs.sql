-- [-5, 3] by group under B: L1 2M = 10, L2 max(sqrt 2 * 5 = 7.07, D = 8) = 8, Linf max(5, 8) = 8.
SELECT member, SUM(change) FROM people GROUP BY member

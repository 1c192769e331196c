-- Declared keys. U: one row is in one group: 1 and M = 90. B: it may leave one group for another: counts L1 2, L2
-- sqrt 2 = 1.41421, Linf 1; sums L1 2M = 180, L2 max(sqrt 2 M, D) = 127.279, Linf max(M, D) = 90.
SELECT sex, COUNT(*), SUM(age) FROM people GROUP BY sex

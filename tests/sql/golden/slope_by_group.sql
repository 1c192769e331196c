-- hours * 2 lies in [2, 198]: U 198; by group B L1 2 M = 396, L2 sqrt(2) M = 280.01, Linf max(M, D) = 198.
SELECT sex, REGR_SLOPE(hours * 2, age) FROM people GROUP BY sex

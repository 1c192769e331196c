-- Filter and groups together are as groups alone: B counts L1 2, L2 sqrt 2, Linf 1; hours in [41, 99], B sums L1 198,
-- L2 sqrt 2 * 99 = 140.007, Linf 99.
SELECT member, COUNT(*), SUM(hours) FROM people WHERE hours > 40 GROUP BY member

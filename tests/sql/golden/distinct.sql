-- A row is one value more at most: U 1. B: one may go and one come, but the number moves by 1 at most.
SELECT COUNT(DISTINCT city), APPROX_COUNT_DISTINCT(age) FROM people

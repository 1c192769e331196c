-- 0 or 1: U 1, B 1; with NULL the same, but the count may change.
SELECT SUM(member), SUM(active) FROM people

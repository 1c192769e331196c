-- Counts every row: the same as COUNT(*), B 0.
SELECT COUNT(age) FROM people

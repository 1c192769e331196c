-- That hours is NULL is not used: [1, 99] and nullable is sound, since the sum is then 0.
SELECT SUM(hours) FROM people WHERE hours IS NULL

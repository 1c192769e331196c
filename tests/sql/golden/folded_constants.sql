-- Constants are computed once: 2 * 3 + 1 is 7, 1 / 0 is NULL.
SELECT SUM(age * (2 * 3 + 1)) FROM people WHERE age < 20 + 20 OR 1 / 0 > 1

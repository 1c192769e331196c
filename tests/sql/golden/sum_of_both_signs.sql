-- Values in [-5, 3]: U M = 5, B D = 8.
SELECT SUM(change) FROM people

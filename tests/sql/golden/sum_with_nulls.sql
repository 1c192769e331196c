-- [1, 99] or nothing: U 99; B max(M, D) = max(99, 98) = 99.
SELECT SUM(hours) FROM people

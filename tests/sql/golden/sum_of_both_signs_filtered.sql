-- [-5, 3] or nothing: U 5; B max(M, D) = max(5, 8) = 8.
SELECT SUM(change) FROM people WHERE member

-- [17, 90] or nothing: U 90; B max(M, D) = max(90, 73) = 90.
SELECT SUM(age) FROM people WHERE member

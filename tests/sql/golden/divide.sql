-- [17 / 2, 90 / 2] = [8.5, 45] outward. A quotient counts as nullable, though 2 is never 0: U 45, B 45.
SELECT SUM(age / 2) FROM people

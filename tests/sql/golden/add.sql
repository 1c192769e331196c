-- [17 + 1, 90 + 99] = [18, 189], NULL where hours is: U 189, B 189. [17 - 5, 90 + 3] = [12, 93], one unit in the last
-- place outward: U 93, B 81.
SELECT SUM(age + hours), SUM(age + change) FROM people

-- [17 - 99, 90 - 1] = [-82, 89]: U 89, B 171. age - age is not known to be 0: [-73, 73], U 73, B 146.
SELECT SUM(age - hours), SUM(age - age) FROM people

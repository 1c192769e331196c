-- One value is left: 40 or nothing, U 40, B 40.
SELECT SUM(age) FROM people WHERE age = 40

-- [0, 200000] stays so: U 200000, B 200000.
SELECT SUM(ROUND(income)), SUM(ROUND(age)) FROM people

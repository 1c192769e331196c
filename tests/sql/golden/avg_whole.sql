-- AVG is measured like SUM: U 90, B 73, count U 1, B 0.
SELECT AVG(age) FROM people

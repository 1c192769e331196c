-- 20 <= age <= 60: U 60, B max(60, 40) = 60.
SELECT SUM(age) FROM people WHERE age BETWEEN 20 AND 60

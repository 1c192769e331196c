-- 20 < age < 60 is 21..59 between integers.
SELECT SUM(age) FROM people WHERE age > 20 AND 60 > age

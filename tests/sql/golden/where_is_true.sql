-- A condition that IS TRUE is true: age in 17..29.
SELECT SUM(age) FROM people WHERE (age < 30) IS TRUE

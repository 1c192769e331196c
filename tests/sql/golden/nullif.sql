-- [17, 90], but NULL where age is 20: U 90, B max(90, 73) = 90.
SELECT SUM(NULLIF(age, 20)) FROM people

-- min(max(hours, 10), age): hours and 10 give [10, 99], the least of that and [17, 90] is [10, 90]. NULL stays: U 90,
-- B 90.
SELECT SUM(CLAMP(hours, 10, age)) FROM people

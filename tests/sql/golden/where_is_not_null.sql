-- [1, 99], not NULL; a row may still leave: B 99.
SELECT SUM(hours), AVG(hours) FROM people WHERE hours IS NOT NULL

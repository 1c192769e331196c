-- Only an hours that is not NULL is outside a list: [1, 99], U 99, B 99.
SELECT SUM(hours), COUNT(hours) FROM people WHERE hours NOT IN (1, 2)

-- One of 10, 20, 40: [10, 40], not NULL.
SELECT SUM(hours) FROM people WHERE hours IN (40, 10, 20)

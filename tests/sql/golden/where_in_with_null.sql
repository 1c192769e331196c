-- NULL in the list can make no row pass: [10, 40].
SELECT SUM(hours) FROM people WHERE hours IN (40, NULL, 10)

-- Not NULL, and no narrower.
SELECT SUM(hours) FROM people WHERE hours <> 7 AND city <> 'Brest'

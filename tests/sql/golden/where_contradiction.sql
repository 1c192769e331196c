-- No row passes: either fact holds, and the declared one is kept.
SELECT SUM(age) FROM people WHERE age > 200

-- No row passes; what is declared stays.
SELECT SUM(age), COUNT(*) FROM people WHERE NULL

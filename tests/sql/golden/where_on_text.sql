-- Text has no range; comparing makes it not NULL: COUNT(city) is then a count of rows that pass: B 1.
SELECT COUNT(city) FROM people WHERE city >= 'B' AND sex IN ('Male')

-- Refused: no text has more than 2^32 - 1 characters, which nobody has said of city.
SELECT AVG(LENGTH(city) + 1) FROM people

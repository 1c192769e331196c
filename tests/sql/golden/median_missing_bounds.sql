-- Refused: there is no range to draw from.
SELECT MEDIAN(score) FROM people

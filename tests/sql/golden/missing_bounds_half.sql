-- Refused: score > 0 leaves no upper end.
SELECT AVG(score) FROM people WHERE score > 0

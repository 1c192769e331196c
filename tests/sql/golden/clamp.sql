-- CLAMP bounds what has no bounds: [-2, 5] or NULL: U 5, B 7.
SELECT SUM(CLAMP(score, -2, 5)) FROM people

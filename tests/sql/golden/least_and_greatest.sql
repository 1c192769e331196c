-- GREATEST skips NULL: max(score, 0) is in [0, inf) and never NULL; with LEAST [0, 10]: U 10, B 10, count B 0.
SELECT SUM(LEAST(GREATEST(score, 0), 10)) FROM people

-- member AND active may be NULL, active IS TRUE may not: count B 1 and 0.
SELECT SUM(member AND active), SUM(active IS TRUE), AVG(active IS NULL), SUM(NOT member OR active) FROM people

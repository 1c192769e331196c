-- All of it is about released values: the sensitivities are those of the aggregates. AVG(age) comes in by ORDER BY
-- alone.
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING n > 10 AND sex IS NOT NULL ORDER BY AVG(age) DESC NULLS FIRST, 1 LIMIT 5 OFFSET 1

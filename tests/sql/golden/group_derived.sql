-- age has 74 public values, active three (NULL is one), region the three that were declared: 666 cells.
SELECT age, active, region, COUNT(*) FROM people GROUP BY age, active, region

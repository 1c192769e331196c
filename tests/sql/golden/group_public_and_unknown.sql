-- One unknown key makes every combination unknown; year has no bounds, so it is unknown too.
SELECT sex, year, COUNT(*) FROM people GROUP BY sex, year

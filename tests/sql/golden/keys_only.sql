-- A list of groups alone: nothing is summed.
SELECT sex FROM people GROUP BY sex

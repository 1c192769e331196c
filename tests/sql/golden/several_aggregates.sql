-- Each is measured by itself; the AVG and SUM of one column are two aggregations over one argument.
SELECT COUNT(*), COUNT(hours), SUM(hours), AVG(hours), AVG(age) FROM people

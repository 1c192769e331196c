-- Values in [17, 90]: U M = 90, B D = 73, the count is public under B.
SELECT SUM(age) FROM people

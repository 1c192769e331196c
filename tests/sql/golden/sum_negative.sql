-- Values in [-90, -17]: U 90, B 73.
SELECT SUM(-age) FROM people

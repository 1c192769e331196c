-- [-90, -17] or nothing: U 90, B max(90, 73) = 90.
SELECT SUM(-age) FROM people WHERE member

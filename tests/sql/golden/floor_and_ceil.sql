-- change is in [-5.0, 3.0], change / 2 in [-2.5, 1.5] outward and nullable: FLOOR and CEIL move a value by at most 1
-- and not past an integer bound, so both are in [-3, 2]: U 3, B 5. FLOOR(change): [-5, 3], U 5, B 8.
SELECT SUM(FLOOR(change / 2)), SUM(CEIL(change / 2)), SUM(FLOOR(change)) FROM people

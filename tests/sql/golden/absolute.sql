-- |change| is in [0, 5]: U 5, B 5. |-age| is in [17, 90]: U 90, B 73.
SELECT SUM(ABS(change)), SUM(ABS(-age)) FROM people

-- change lies in [-5, 3]: U max(5, 3) = 5, B D = 8.
SELECT STDDEV_POP(change) FROM people

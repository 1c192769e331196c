-- age BETWEEN hours AND 50: age in 17..50. Conditions are read from left to right, each once: hours <= age gives
-- 1..90, and the later age <= 50 is not carried back to it.
SELECT SUM(age), SUM(hours) FROM people WHERE age BETWEEN hours AND 50

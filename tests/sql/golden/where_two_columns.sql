-- hours <= age - 20: age - 20 is in [-3, 70], so hours is in [1, 70] and age - 20 in [1, 70]. Of age nothing is
-- known.
SELECT SUM(hours), SUM(age - 20), SUM(age) FROM people WHERE hours <= age - 20

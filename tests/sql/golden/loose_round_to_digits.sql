-- ROUND(x, n) moves x by at most half of 10^-n; the rule allows 10^-n: [0 - 0.1, 200000 + 0.1] outward: U 200000.1, B
-- 200000.2.
SELECT SUM(ROUND(income, 1)) FROM people

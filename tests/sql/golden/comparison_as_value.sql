-- 1 where true, 0 where false: U 1. age is never NULL: B 1, count B 0; income may be: B 1, count B 1.
SELECT AVG(age > 30), SUM(income > 50000) FROM people

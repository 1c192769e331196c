-- Names match without regard to case; the plan shows the declared spelling.
SELECT SUM(P."AGE") FROM People AS p WHERE p.Age > 20

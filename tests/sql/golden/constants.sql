-- SUM(1) adds 1 a row: U 1, B 0. SUM(NULL) adds nothing: 0. AVG(2.5): U 2.5, B 0.
SELECT SUM(1), SUM(NULL), AVG(2.5) FROM people

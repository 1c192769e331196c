-- age % 7 is in [0, 6]; the rule says [0, 7], and nullable: U 7, B 7. change % 2 is in [-2, 2]: U 2, B 4.
SELECT SUM(age % 7), SUM(change % 2) FROM people

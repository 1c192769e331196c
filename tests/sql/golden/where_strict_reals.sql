-- Between reals a strict comparison narrows like one that is not: [1000, 50000.5].
SELECT SUM(income) FROM people WHERE income > 1000 AND income < 50000.5

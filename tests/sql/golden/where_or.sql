-- Either 20..30 or 50..60: the hull [20, 60]. What only one side says of hours is not known: nullable, [1, 99].
SELECT SUM(age), SUM(hours) FROM people WHERE age BETWEEN 20 AND 30 AND hours > 5 OR age BETWEEN 50 AND 60

-- age < 60.5 is age <= 60, age > 19.5 is age >= 20; hours = 7.5 holds for no row, and then says nothing.
SELECT SUM(age), SUM(hours) FROM people WHERE age < 60.5 AND age > 19.5 AND hours = 7.5

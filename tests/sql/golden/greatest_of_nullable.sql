-- max(age, hours) is in [17, 99], never NULL: U 99, B 82.
SELECT SUM(GREATEST(hours, age)) FROM people

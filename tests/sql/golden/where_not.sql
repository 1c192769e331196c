-- NOT (p OR q) is NOT p AND NOT q: 20..60.
SELECT SUM(age) FROM people WHERE NOT (age < 20 OR NOT age <= 60)

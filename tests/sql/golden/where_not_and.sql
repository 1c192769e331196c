-- NOT (p AND q) is NOT p OR NOT q: age <= 29 or age >= 61, so nothing but the hull [17, 90] is known.
SELECT SUM(age) FROM people WHERE NOT (age >= 30 AND age <= 60)

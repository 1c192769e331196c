-- IS FALSE is not used: [17, 90].
SELECT SUM(age) FROM people WHERE (age < 30) IS FALSE

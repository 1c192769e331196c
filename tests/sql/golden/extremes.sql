-- WHERE narrows the range that values are drawn from: [17, 59]. The filter of MAX is none on hours: [1, 99].
SELECT MIN(age), MAX(hours) FILTER (WHERE age > 30) FROM people WHERE age < 60

-- WHERE narrows what is summed; the list of a key's groups stays that of its declaration: 74.
SELECT age, SUM(age) FROM people WHERE age < 20 GROUP BY age

-- IN over a column is a chain of OR: hours = age or hours = 20, so hours is in the hull of [17, 90] and [20, 20].
SELECT SUM(hours) FROM people WHERE hours IN (age, 20)

-- A changed row may leave or enter the filter: B 1.
SELECT COUNT(*) AS n FROM people WHERE age > 30

-- A column without declared keys: its values are private, the sensitivities are those of any groups.
SELECT city, COUNT(*) FROM people GROUP BY city

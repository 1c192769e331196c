-- Refused: nobody listed the values of city.
SELECT MODE(city) FROM people

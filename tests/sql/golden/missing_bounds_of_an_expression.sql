-- Refused: change is in [-5, 3] and can be as near to 0 as floats go.
SELECT SUM(income / change) FROM people

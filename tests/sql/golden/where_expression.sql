-- Facts are kept by expression: hours * 2 < 50 is hours * 2 in [2, 49]; of hours nothing is known.
SELECT SUM(hours * 2), SUM(hours) FROM people WHERE hours * 2 < 50

-- hours or 0: [0, 99], never NULL: U 99, B 99. hours or age: the hull [1, 99]: U 99, B 98.
SELECT SUM(COALESCE(hours, 0)), SUM(COALESCE(hours, age)) FROM people

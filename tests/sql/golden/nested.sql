-- -(hours - 100) is in [1, 99]; its double plus change is in [2 - 5, 198 + 3] = [-3, 201] outward: U 201, B 204.
SELECT SUM(2 * -(hours - 100) + change) FROM people

-- Ends of the four products: -5 * 90 = -450 to 3 * 90 = 270, outward: U 450, B 720.
SELECT SUM(change * age) FROM people

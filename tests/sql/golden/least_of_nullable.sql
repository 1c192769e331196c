-- hours may be NULL, age not: the least is age or min(age, hours): [1, 90], never NULL: U 90, B 89. Of two that may
-- be NULL: the hull [0, 200000], nullable: U 200000, B 200000.
SELECT SUM(LEAST(hours, age)), SUM(LEAST(hours, income)) FROM people

-- The keys of sex, Female and Male, have 6 and 4 characters; sex may be NULL. U: M = 6. B: D = 6, for nothing may be added.
SELECT SUM(LENGTH(sex)) FROM people

-- FILTER makes income NULL, and hours with it: a row counts where neither is. U 200000, B max(200000, 200000).
SELECT CORR(income, hours) FILTER (WHERE member) FROM people

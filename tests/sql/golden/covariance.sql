-- A row counts where neither is NULL, and hours may be: age is made NULL there. U 90; B max(90, 73) = 90, count 1.
SELECT COVAR_POP(age, hours) FROM people

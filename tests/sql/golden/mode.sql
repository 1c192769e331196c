-- NULL is never drawn: 2 values of sex, 2 of region, 2 booleans, 90 - 17 + 1 = 74 of age.
SELECT MODE(sex), MODE(region), MODE(active), APPROX_TOP_K(age, 3) FROM people

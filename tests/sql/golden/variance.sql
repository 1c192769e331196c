-- Of [17, 90], never NULL and not filtered, both measured like AVG: U 90, B D = 73, count U 1, B 0.
SELECT VAR_POP(age), STDDEV(age) FROM people

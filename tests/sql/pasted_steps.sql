# A text, and behind = what DuckDB is asked in its place.
SELECT QUANTILE(x, [0.3, 0.9])[2] FROM people
= SELECT QUANTILE_DISC(x, 0.9) FROM people
SELECT g, QUANTILE_DISC(x, [0.3, 0.9])[1] AS q FROM people GROUP BY g
= SELECT g, QUANTILE_DISC(x, 0.3) FROM people GROUP BY g
SELECT APPROX_QUANTILES(x, 100)[OFFSET(30)] AS a, APPROX_QUANTILES(x, 100)[SAFE_OFFSET(90)] AS b FROM people
= SELECT QUANTILE_DISC(x, 0.3), QUANTILE_DISC(x, 0.9) FROM people
SELECT APPROX_QUANTILES(x, 10)[ORDINAL(4)] AS c, APPROX_QUANTILES(x, 10)[4] AS d FROM people
= SELECT QUANTILE_DISC(x, 0.3), QUANTILE_DISC(x, 0.3) FROM people
SELECT (PERCENTILE_DISC(ARRAY[0.3, 0.9]) WITHIN GROUP (ORDER BY x))[2] FROM people
= SELECT QUANTILE_DISC(x, 0.9) FROM people
SELECT (PERCENTILE_DISC([0.3, 0.9]) WITHIN GROUP (ORDER BY x DESC))[1] FROM people
= SELECT QUANTILE_DISC(x, 0.7) FROM people
SELECT APPROX_PERCENTILE(x, 0.3), PERCENTILE_APPROX(x, 0.3, 1000) FROM people
= SELECT QUANTILE_DISC(x, 0.3), QUANTILE_DISC(x, 0.3) FROM people
SELECT HISTOGRAM(g)['a'] FROM people
= SELECT COUNT(*) FROM people WHERE g = 'a'
SELECT QUANTILE_CONT(n, [0.3, 0.9])[2] AS q, LIST(n ORDER BY n)[1] AS f, LIST(n ORDER BY n)[-1] AS l FROM (SELECT k, COUNT(*) AS n FROM people GROUP BY k)
SELECT AVG(q) FROM (SELECT who, QUANTILE_DISC(paid, [0.3, 0.9])[2] AS q FROM visits GROUP BY who)
SELECT SUM(a), COUNT(*) FROM (SELECT who, paid AS a FROM visits UNION ALL BY NAME SELECT paid AS A, who FROM calls)
SELECT COUNT(b), COUNT(*) FROM (SELECT who, paid AS a FROM visits UNION ALL BY NAME SELECT paid AS b, who FROM calls)
SELECT COUNT(a) FROM (SELECT who, paid AS a FROM visits UNION ALL BY NAME (SELECT paid AS b, who FROM calls UNION ALL BY NAME SELECT who, paid AS a FROM calls))
SELECT 'v' AS w, COUNT(*) AS n FROM visits UNION ALL BY NAME SELECT COUNT(*) AS n, 'c' AS w FROM calls
PIVOT people ON g IN ('a', 'b') USING COUNT(*) GROUP BY k ORDER BY k DESC LIMIT 3
PIVOT (SELECT g, k, COUNT(*) AS n FROM people GROUP BY g, k) ON g IN ('a', 'b') USING SUM(n) GROUP BY k ORDER BY k
SELECT DATE(day, 'start of month') AS m, COUNT(*) AS n FROM visits GROUP BY 1 HAVING COUNT(*) > 1
= SELECT DATE_TRUNC('month', day), COUNT(*) FROM visits GROUP BY 1 HAVING COUNT(*) > 1
SELECT DATE(day, 'start of month', '+1 month', '-1 day') AS m, COUNT(*) AS n FROM visits GROUP BY 1 HAVING COUNT(*) > 1
= SELECT LAST_DAY(day), COUNT(*) FROM visits GROUP BY 1 HAVING COUNT(*) > 1
SELECT COUNT(*) FROM visits WHERE DATE(day, '-10 days') > '2024-03-01'
= SELECT COUNT(*) FROM visits WHERE day - 10 > '2024-03-01'
SELECT DATETRUNC(month, day) AS m, COUNT(*) AS n FROM visits GROUP BY DATETRUNC(month, day) HAVING COUNT(*) > 1
= SELECT DATE_TRUNC('month', day), COUNT(*) FROM visits GROUP BY 1 HAVING COUNT(*) > 1
SELECT DIV(x, 10) AS t, COUNT(*) AS n FROM people GROUP BY 1 HAVING COUNT(*) > 1
= SELECT x // 10, COUNT(*) FROM people GROUP BY 1 HAVING COUNT(*) > 1
SELECT labels.k, ANY_VALUE(name) AS name, COUNT(*) AS n FROM people JOIN labels ON people.k = labels.k GROUP BY labels.k
SELECT l.k AS key, ANY_VALUE(name), ANY_VALUE(l.kind), AVG(x) FROM people AS p JOIN labels AS l ON p.k = l.k GROUP BY key
SELECT p.k, ANY_VALUE(name) AS name, COUNT(*) AS n FROM people AS p JOIN labels AS l ON p.k = l.k GROUP BY 1 HAVING ANY_VALUE(name) > 'u' ORDER BY ANY_VALUE(name)
SELECT l.k, ANY_VALUE(name) AS name, RANK() OVER (ORDER BY l.k) AS r FROM people AS p JOIN labels AS l ON p.k = l.k GROUP BY l.k

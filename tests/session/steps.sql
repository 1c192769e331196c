SELECT sex, 100 * COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM people GROUP BY sex

SELECT city, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM people GROUP BY city ORDER BY r, city

SELECT city, COUNT(*) AS n FROM people GROUP BY 1 QUALIFY ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC, city) <= 2

SELECT city, n FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city) QUALIFY RANK() OVER (ORDER BY n) = 1

SELECT sex, city, COUNT(*) AS n, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY sex) AS p FROM people GROUP BY sex,
city

SELECT month, SUM(total) AS t, SUM(total) - LAG(SUM(total)) OVER (ORDER BY month) AS d FROM orders GROUP BY month

SELECT month, SUM(SUM(total)) OVER (ORDER BY month ROWS UNBOUNDED PRECEDING) AS running FROM orders GROUP BY month

SELECT sex, AVG(age) - (SELECT AVG(age) FROM people) AS d FROM people GROUP BY sex

SELECT COUNT(*) / (SELECT COUNT(*) FROM orders) AS p FROM people

SELECT (SELECT COUNT(*) FROM people) AS p, (SELECT COUNT(*) FROM orders) AS o

SELECT sex, COUNT(*) AS n FROM people GROUP BY sex UNION ALL SELECT 'all', COUNT(*) FROM people

SELECT city FROM people GROUP BY city INTERSECT SELECT city FROM cities WHERE size > 1

SELECT city FROM cities EXCEPT SELECT city FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city) WHERE n > 130

SELECT c.country, p.n FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city) p JOIN cities c USING (city)

WITH a AS (SELECT city, COUNT(*) AS n FROM people GROUP BY city) SELECT city FROM a WHERE n > (SELECT AVG(n) FROM a)

WITH a AS (SELECT sex, AVG(pay) AS x FROM people GROUP BY sex) SELECT l.x - r.x AS d FROM a l, a r WHERE l.sex <
r.sex

WITH a(k, v) AS (SELECT city, COUNT(*) FROM people GROUP BY city), b AS (SELECT k, v * 2 AS w FROM a) SELECT k, v, w
FROM a JOIN b USING (k)

SELECT MEDIAN(n) AS m, STDDEV(n) AS s FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city)

SELECT city, n, NTILE(2) OVER (ORDER BY n, city) AS half FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city)
ORDER BY n DESC, city

SELECT city, n FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n DESC, city LIMIT 2) WHERE n IN
(SELECT COUNT(*) FROM people GROUP BY city)

SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING COUNT(*) > (SELECT COUNT(*) / 2 FROM people)

SELECT ARG_MAX(city, n) AS top, STRING_AGG(city, ',' ORDER BY city) AS every FROM (SELECT city, COUNT(*) AS n FROM
people GROUP BY city)

SELECT UPPER(city) AS c, COUNT(*) AS n, DENSE_RANK() OVER (ORDER BY UPPER(city)) AS r FROM people GROUP BY
UPPER(city)

SELECT age // 2 AS a, COUNT(*) AS n, COUNT(*) - FIRST_VALUE(COUNT(*)) OVER (ORDER BY age // 2) AS d FROM people
GROUP BY age // 2

SELECT AVG(LEAST(n, 20)) AS a, (SELECT COUNT(*) FROM people) AS p FROM (SELECT customer, COUNT(*) AS n FROM orders
GROUP BY customer)

SELECT i, n FROM generate_series(1, 4) AS t(i) LEFT JOIN (SELECT month, COUNT(*) AS n FROM orders GROUP BY month) ON
month = i

SELECT COUNT(*) AS n FROM (SELECT sex, city, COUNT(*) AS n FROM people GROUP BY sex, city) a WHERE EXISTS (SELECT 1
FROM cities c WHERE c.city = a.city AND c.size < 3)

SELECT x, SUM(COUNT(*)) OVER (ORDER BY x) AS c FROM (SELECT pay // 25 AS x FROM people) GROUP BY x

SELECT COUNT(*) FILTER (WHERE n > 100) AS big FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city)

SELECT sex, MAX(n) AS m FROM (SELECT sex, city, COUNT(*) AS n FROM people GROUP BY sex, city) GROUP BY ALL ORDER BY
sex

SELECT DISTINCT ON (sex) sex, city FROM (SELECT sex, city, COUNT(*) AS n FROM people GROUP BY sex, city) ORDER BY
sex, n, city

SELECT sex, RANK() OVER w AS r FROM people GROUP BY sex WINDOW w AS (ORDER BY COUNT(*))

SELECT LIST(n ORDER BY n)[1] AS least FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city)

SELECT city, RANK() OVER (ORDER BY n) AS place FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city) WHERE
city LIKE '%o%'

WITH people AS (SELECT * FROM people WHERE sex = 'F'), u AS (SELECT * FROM people) SELECT (WITH people AS (SELECT *
FROM people WHERE sex = 'M') SELECT COUNT(*) FROM u) AS f, (SELECT COUNT(*) FROM orders) AS o

WITH f AS (SELECT * FROM people WHERE sex = 'F'), g AS (SELECT * FROM f WHERE age > 21) SELECT (WITH f AS (SELECT *
FROM people WHERE sex = 'M') SELECT COUNT(*) FROM g) AS a, (SELECT COUNT(*) FROM people) AS b

WITH f AS (SELECT * FROM people WHERE sex = 'F'), g AS (SELECT * FROM f WHERE age > 21) SELECT (WITH g AS (SELECT *
FROM g WHERE city = 'rome'), f AS (SELECT * FROM g WHERE g.pay > 10) SELECT COUNT(*) FROM f WHERE f.age < 24) AS a,
(SELECT COUNT(*) FROM g) AS b, (SELECT COUNT(*) FROM f) AS c

WITH f AS (SELECT city, COUNT(*) AS n FROM people GROUP BY city) SELECT (WITH f AS (SELECT SUM(n) AS n FROM f) SELECT n
FROM f) AS a, (SELECT MAX(f.n) FROM f) AS b

WITH f AS (SELECT * FROM people WHERE sex = 'F') SELECT city, COUNT(*) - (SELECT COUNT(*) FROM (WITH F AS (SELECT *
FROM people WHERE sex = 'M') SELECT * FROM f)) AS d, RANK() OVER (ORDER BY COUNT(*), city) AS r FROM f GROUP BY city

WITH f(a, b) AS (SELECT city, age FROM people) SELECT a, COUNT(*) AS n, (WITH f(x) AS (SELECT pay FROM people) SELECT
AVG(x) FROM f) AS p FROM f GROUP BY a

WITH people AS (SELECT city, COUNT(*) AS n FROM people GROUP BY city) SELECT people.city, RANK() OVER (ORDER BY n) AS r
FROM people

SELECT city AS k, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*), city) AS c1 FROM people GROUP BY city QUALIFY c1 = 1

SELECT city AS c_0, COUNT(*) AS c0, RANK() OVER (ORDER BY COUNT(*), city) AS C1, SUM(c0) OVER () AS c2 FROM people
GROUP BY city QUALIFY c1 = 1

SELECT sex AS city, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*)) AS r FROM people GROUP BY sex, city ORDER BY city, n
LIMIT 3

SELECT sex AS city, city AS o, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*)) AS r FROM people GROUP BY sex, city ORDER
BY UPPER(CITY), n LIMIT 3

SELECT DISTINCT ON (city) sex AS city, people.city AS o, COUNT(*) AS n FROM people GROUP BY sex, people.city ORDER BY
city, o

SELECT sex AS city, city AS o, RANK() OVER (PARTITION BY CITY ORDER BY COUNT(*)) AS r FROM people GROUP BY sex, city

SELECT sex AS city, city AS o, RANK() OVER (PARTITION BY "City" ORDER BY COUNT(*)) AS r FROM people GROUP BY sex,
people.city

SELECT sex AS k, city AS k, COUNT(*) AS n FROM people GROUP BY sex, city QUALIFY k = 'rome' OR ROW_NUMBER() OVER () < 0
ORDER BY n, sex

SELECT sex AS s, UPPER(city) AS c, COUNT(*) AS n, 1 AS one, n / SUM(COUNT(*)) OVER () AS t FROM people GROUP BY ALL

SELECT sex, COUNT(*) / (SELECT COUNT(*) FROM people) AS x FROM people GROUP BY ALL

SELECT SUM(COUNT(*)) OVER () AS x FROM people GROUP BY ALL

SELECT city, (SELECT COUNT(*) FROM people) AS n FROM cities

SELECT (SELECT COUNT(*) FROM people) AS n, city FROM cities

SELECT POWER(n, 400) > 1e308 AS large, EXP(n * 100) > 1e308 AS larger, POWER(n - n, -1) IS NULL AND FALSE AS no, LN(n) AS l, RANK() OVER (ORDER BY n) AS r
FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)

SELECT i, n FROM generate_series(3, 1, -1) AS g(i), (SELECT COUNT(*) AS n FROM people)

SELECT LIST(n ORDER BY n)[-1] AS most, LIST(n ORDER BY n)[-2] AS next, LIST(n ORDER BY n)[1] AS least
FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)

SELECT COUNT(*) AS n FROM people WHERE pay > (SELECT AVG(pay) FROM people)

SELECT SUM(CASE WHEN pay > (SELECT AVG(pay) FROM people) THEN 1 ELSE 0 END) AS s,
COUNT(*) FILTER (WHERE age > (SELECT AVG(age) FROM people)) AS c FROM people

SELECT city, COUNT(*) AS n FROM people
WHERE city IN (SELECT city FROM people GROUP BY city ORDER BY COUNT(*) DESC LIMIT 2) GROUP BY city

SELECT city, sex, COUNT(*) AS n, AVG(pay) AS p FROM people
JOIN (SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n DESC LIMIT 2) top USING (city) GROUP BY city, sex

WITH top AS (SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n DESC LIMIT 2)
SELECT city, n, COUNT(*) AS m FROM people JOIN top USING (city) WHERE pay > (SELECT MIN(n) / 4 FROM top) GROUP BY city, n

SELECT AVG(GREATEST(0, LEAST(c, 10))) AS a FROM (SELECT customer, COUNT(*) AS c FROM orders
WHERE total > (SELECT AVG(total) FROM orders) GROUP BY customer)

SELECT city, COUNT(*) AS n FROM people p JOIN (SELECT city AS c, RANK() OVER (ORDER BY COUNT(*) DESC) AS r
FROM people GROUP BY city) t ON p.city = t.c WHERE t.r <= 2 GROUP BY city

SELECT pay > (SELECT AVG(pay) FROM people) AS above, COUNT(*) AS n FROM people GROUP BY above HAVING COUNT(*) > 0.5

SELECT * FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city) ORDER BY 2 DESC

SELECT a.*, n / 2 AS half FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city) AS a ORDER BY 3, 1 DESC LIMIT 2

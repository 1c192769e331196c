SELECT age // 10 AS "Decade", COUNT(*), SUM(COUNT(*)) OVER ()
FROM people GROUP BY decade ORDER BY DECADE;

SELECT age // 10 AS decade, job, COUNT(*) AS n, RANK() OVER w AS r
FROM people GROUP BY ROLLUP (1, 2) WINDOW w AS (ORDER BY decade, job) ORDER BY decade, job;

SELECT COUNT(*) AS n, SUM(COUNT(*)) OVER (PARTITION BY decade) AS s, age // 10 AS decade, job
FROM people GROUP BY GROUPING SETS ((decade), (decade, job)) ORDER BY 3, 4;

SELECT age // 10 AS decade, decade * 10 AS lo, COUNT(*) AS n, RANK() OVER (ORDER BY lo) AS r
FROM people GROUP BY decade ORDER BY lo;

SELECT age // 10 AS decade, COUNT(*) AS n, RANK() OVER (ORDER BY decade) AS r, r + 1 AS s
FROM people GROUP BY decade ORDER BY s DESC;

SELECT DISTINCT ON (decade) age // 10 AS decade, job, COUNT(*) AS n
FROM people GROUP BY decade, job ORDER BY decade, job;

SELECT age // 10 AS age, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS s
FROM people GROUP BY people.age ORDER BY people.age;

SELECT age // 10 AS decade, COUNT(*) AS n
FROM people GROUP BY decade HAVING decade > 2 AND COUNT(*) > (SELECT COUNT(*) // 100 FROM people) ORDER BY decade;

SELECT s, q.job, n FROM (SELECT SUM(COUNT(*)) OVER () AS s, job, COUNT(*) AS n
FROM people GROUP BY 2) q ORDER BY 2;

SELECT age // 10 AS decade, COUNT(*) AS n
FROM people WHERE decade > 4 GROUP BY decade ORDER BY decade;

SELECT COUNT(*) AS n FROM (SELECT age // 10 AS decade, job
FROM people WHERE decade + 1 > 4 AND decade < 6) q;

SELECT job, COUNT(*) AS n FROM (SELECT age // 10 AS decade, decade + 1 AS next, job
FROM people WHERE next > 4) q GROUP BY job ORDER BY 1;

SELECT age // 10 AS decade, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS s
FROM people WHERE decade > 4 GROUP BY decade ORDER BY decade;

SELECT COUNT(*) AS n FROM (SELECT age // 10 AS decade
FROM people WHERE decade > 4) q;

SELECT COUNT(*) AS n, SUM(lo) AS s FROM (SELECT age // 10 AS decade, decade * 10 AS lo
FROM people) q;

SELECT age + 1 AS age, COUNT(*) AS n
FROM people WHERE age < 22 GROUP BY ALL ORDER BY age;

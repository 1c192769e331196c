-- What other engines' words mean: a query, =, and the same in DuckDB's.

SELECT state, SAFE_DIVIDE(SUM(total), COUNT(less)) AS x FROM orders GROUP BY state
=
SELECT state, SUM(total) / COUNT(less) AS x FROM orders GROUP BY state

SELECT state, RATIO_TO_REPORT(COUNT(*)) OVER () AS x FROM orders GROUP BY state
=
SELECT state, COUNT(*) / SUM(COUNT(*)) OVER () AS x FROM orders GROUP BY state

SELECT state, RATIO_TO_REPORT(n + 1) OVER (PARTITION BY n > 600) AS x FROM (SELECT state, COUNT(*) AS n FROM orders GROUP BY
state)
=
SELECT state, (n + 1) / SUM(n + 1) OVER (PARTITION BY n > 600) AS x FROM (SELECT state, COUNT(*) AS n FROM orders GROUP BY
state)

SELECT DIV0(SUM(total), COUNT(*) - COUNT(*)) AS x, DIV0(10, 4) AS y FROM orders
=
SELECT 0 AS x, CAST(2.5 AS DOUBLE) AS y

SELECT IFF(total < 50, 'low', 'high') AS k, COUNT(*) AS n FROM orders GROUP BY k
=
SELECT IF(total < 50, 'low', 'high') AS k, COUNT(*) AS n FROM orders GROUP BY k

SELECT DECODE(state, 'paid', 1, 'open', 2, 0) AS k, COUNT_BIG(*) AS n FROM orders GROUP BY 1
=
SELECT CASE state WHEN 'paid' THEN 1 WHEN 'open' THEN 2 ELSE 0 END AS k, COUNT(*) AS n FROM orders GROUP BY 1

SELECT DECODE(less, NULL, 'none', 0, 'zero') AS k, COUNT(*) AS n FROM orders GROUP BY 1
=
SELECT CASE WHEN less IS NULL THEN 'none' WHEN less = 0 THEN 'zero' END AS k, COUNT(*) AS n FROM orders GROUP BY
1

SELECT NVL2(less, 'some', 'none') AS k, SUM(ZEROIFNULL(less)) AS s, SUM(ISNULL(less, 9)) AS i FROM orders GROUP
BY 1
=
SELECT IF(less IS NULL, 'none', 'some') AS k, SUM(COALESCE(less, 0)) AS s, SUM(COALESCE(less, 9)) AS i FROM
orders GROUP BY 1

SELECT DATE_TRUNC(DATE(placed), MONTH) AS m, COUNT(*) AS n FROM orders GROUP BY m ORDER BY m
=
SELECT DATE_TRUNC('month', placed) AS m, COUNT(*) AS n FROM orders GROUP BY m ORDER BY m

SELECT TIMESTAMP_TRUNC(placed, QUARTER) AS q, COUNT(*) AS n FROM orders GROUP BY q
=
SELECT DATE_TRUNC('quarter', placed) AS q, COUNT(*) AS n FROM orders GROUP BY q

SELECT DATE_TRUNC(quarter, placed) AS q, COUNT(*) AS n FROM orders GROUP BY q
=
SELECT DATE_TRUNC('quarter', placed) AS q, COUNT(*) AS n FROM orders GROUP BY q

SELECT TRUNC(placed, 'MM') AS m, COUNT(*) AS n FROM orders GROUP BY TRUNC(placed, 'MM')
=
SELECT DATE_TRUNC('month', placed) AS m, COUNT(*) AS n FROM orders GROUP BY m

SELECT DATEPART(year, placed) AS y, DATE_FORMAT(placed, 'yyyy-MM') AS m, COUNT(*) AS n FROM orders GROUP BY 1, 2
=
SELECT YEAR(placed) AS y, STRFTIME(placed, '%Y-%m') AS m, COUNT(*) AS n FROM orders GROUP BY 1, 2

SELECT DATE_FORMAT(placed, '%M %Y') AS m, DATENAME(month, placed) AS w, COUNT(*) AS n FROM orders GROUP BY 1, 2
HAVING n > 9
=
SELECT STRFTIME(placed, '%B %Y') AS m, MONTHNAME(placed) AS w, COUNT(*) AS n FROM orders GROUP BY 1, 2

SELECT EOMONTH(placed) AS e, COUNT(*) AS n FROM orders GROUP BY e
=
SELECT LAST_DAY(placed) AS e, COUNT(*) AS n FROM orders GROUP BY e

SELECT CONVERT(date, placed) AS d, COUNT(*) AS n FROM orders WHERE placed < TO_DATE('2024-01-09', 'YYYY-MM-DD')
GROUP BY 1
=
SELECT CAST(placed AS DATE) AS d, COUNT(*) AS n FROM orders WHERE placed < DATE '2024-01-09' GROUP BY 1

SELECT AVG(DATEDIFF(dd, DATE '2024-01-01', placed)) AS a, AVG(DATE_DIFF(placed, DATE '2024-01-01', MONTH)) AS b,
AVG(DATEDIFF(day, DATE '2024-01-01')) AS c FROM orders
=
SELECT AVG(DATE_DIFF('day', DATE '2024-01-01', placed)) AS a, AVG(DATE_DIFF('month', DATE '2024-01-01', placed))
AS b, AVG(day - DATE '2024-01-01') AS c FROM orders

SELECT COUNT(*) AS n FROM orders WHERE placed >= DATEADD(month, -3, DATE '2024-12-31') AND placed <
DATE_SUB(DATE '2024-12-31', INTERVAL 1 MONTH)
=
SELECT COUNT(*) AS n FROM orders WHERE placed >= DATE '2024-09-30' AND placed < DATE '2024-11-30'

SELECT PERCENTILE(n, 0.5) AS m FROM (SELECT state, COUNT(*) AS n FROM orders GROUP BY state)
=
SELECT QUANTILE_CONT(n, 0.5) AS m FROM (SELECT state, COUNT(*) AS n FROM orders GROUP BY state)

SELECT state, n, SAFE_DIVIDE(n - LAG(n) OVER (ORDER BY state), LAG(n) OVER (ORDER BY state)) AS g, IFF(n > 600,
1, 0) AS k FROM (SELECT state, COUNT(*) AS n FROM orders GROUP BY state) ORDER BY state
=
SELECT state, n, (n - LAG(n) OVER (ORDER BY state)) / LAG(n) OVER (ORDER BY state) AS g, IF(n > 600, 1, 0) AS k
FROM (SELECT state, COUNT(*) AS n FROM orders GROUP BY state) ORDER BY state

SELECT state, SUM(total) AS s FROM (SELECT * EXCLUDE (less) REPLACE (LEAST(total, 99) AS total) RENAME (day AS
d) FROM orders WHERE day > DATE '2024-02-01') GROUP BY state
=
SELECT state, SUM(LEAST(total, 99)) AS s FROM orders WHERE day > DATE '2024-02-01' GROUP BY state

SELECT * EXCEPT (n) FROM (SELECT state, COUNT(*) AS n, SUM(total) AS s FROM orders GROUP BY state)
=
SELECT state, SUM(total) AS s FROM orders GROUP BY state

SELECT k, SUM(v) AS s FROM orders UNPIVOT (v FOR k IN (total, less)) GROUP BY k
=
SELECT 'total' AS k, SUM(total) AS s FROM orders UNION ALL SELECT 'less', SUM(less) FROM orders

SELECT state, COUNT(*) AS n FROM (SELECT customer, state FROM orders GROUP BY customer, state QUALIFY
ROW_NUMBER() OVER (PARTITION BY customer ORDER BY COUNT(*) DESC, state) = 1) GROUP BY state
=
SELECT state, COUNT(*) AS n FROM (SELECT customer, state FROM orders GROUP BY customer, state QUALIFY
ROW_NUMBER() OVER (PARTITION BY customer ORDER BY COUNT(*) DESC, state) = 1) GROUP BY state

SELECT r, COUNT(*) AS n FROM (SELECT customer, state, SUM(total) AS s, RANK() OVER (PARTITION BY customer ORDER
BY SUM(total)) AS r FROM orders GROUP BY customer, state HAVING COUNT(*) > 2) WHERE r <= 3 GROUP BY r
=
SELECT r, COUNT(*) AS n FROM (SELECT customer, state, SUM(total) AS s, RANK() OVER (PARTITION BY customer ORDER
BY SUM(total)) AS r FROM orders GROUP BY customer, state HAVING COUNT(*) > 2) WHERE r <= 3 GROUP BY r

-- Q15 Top Supplier
-- changed: the supplier of the largest noisy revenue, by ORDER BY and LIMIT
-- changed: only the key is shown: name, address and telephone are public, and found by it
-- limits: 10 items a customer, 2.3 on average in a quarter
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 10)
    s_suppkey,
    SUM(l_extendedprice * (1 - l_discount)) AS total_revenue
FROM lineitem, supplier
WHERE s_suppkey = l_suppkey
    AND l_shipdate >= DATE '1996-01-01'
    AND l_shipdate < DATE '1996-01-01' + INTERVAL '3' MONTH
GROUP BY s_suppkey
ORDER BY total_revenue DESC
LIMIT 1

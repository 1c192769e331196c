-- Q5 Local Supplier Volume
-- limits: 4 items a customer, 0.3 on average: 9 a year, one of 25 from the customer's own nation; 1 group, that nation
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 4, max_groups_contributed = 1)
    n_name,
    SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem, supplier, nation, region
WHERE c_custkey = o_custkey
    AND l_orderkey = o_orderkey
    AND l_suppkey = s_suppkey
    AND c_nationkey = s_nationkey
    AND s_nationkey = n_nationkey
    AND n_regionkey = r_regionkey
    AND r_name = 'ASIA'
    AND o_orderdate >= DATE '1994-01-01'
    AND o_orderdate < DATE '1994-01-01' + INTERVAL '1' YEAR
GROUP BY n_name
ORDER BY revenue DESC

-- Q10 Returned Item Reporting
-- changed: by nation: the 20 customers with the largest losses are what must not be told
-- limits: 8 items a customer, 1.1 on average: half of what was ordered in a quarter; 1 group, the customer's nation
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 8, max_groups_contributed = 1)
    n_name,
    SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem, nation
WHERE c_custkey = o_custkey
    AND l_orderkey = o_orderkey
    AND o_orderdate >= DATE '1993-10-01'
    AND o_orderdate < DATE '1993-10-01' + INTERVAL '3' MONTH
    AND l_returnflag = 'R'
    AND c_nationkey = n_nationkey
GROUP BY n_name
ORDER BY revenue DESC

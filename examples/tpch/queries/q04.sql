-- Q4 Order Priority Checking
-- limits: 4 orders a customer, 0.6 on average in a quarter
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 4)
    o_orderpriority,
    COUNT(*) AS order_count
FROM orders
WHERE o_orderdate >= DATE '1993-07-01'
    AND o_orderdate < DATE '1993-07-01' + INTERVAL '3' MONTH
    AND EXISTS (
        SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate
    )
GROUP BY o_orderpriority
ORDER BY o_orderpriority

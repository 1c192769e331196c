-- Q18 Large Volume Customer
-- changed: how many large orders there are and what they cost together, not the customers and their orders
-- changed: the items are read in the sub-query only, so that an order is one row
-- limits: 1 order a customer, 0.0006 on average
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 1)
    COUNT(*) AS large_orders,
    SUM(o_totalprice) AS totalprice
FROM orders
WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 300)

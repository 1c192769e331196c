-- Q3 Shipping Priority
-- changed: the revenue of all unshipped orders together: a single order is one customer's
-- limits: 12 items a customer, 1.5 on average: ordered in 121 days and not shipped yet
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 12)
    SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem
WHERE c_mktsegment = 'BUILDING'
    AND c_custkey = o_custkey
    AND l_orderkey = o_orderkey
    AND o_orderdate < DATE '1995-03-15'
    AND l_shipdate > DATE '1995-03-15'

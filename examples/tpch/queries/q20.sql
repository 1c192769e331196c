-- Q20 Potential Part Promotion
-- changed: half of what all suppliers of CANADA together shipped of forest parts in a year, not the suppliers which
--   have more than that in stock: a part of one supplier is sold once a year, so a name would tell of one customer
-- limits: 1 item a customer, 0.004 on average
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 1)
    0.5 * SUM(l_quantity) AS half_shipped
FROM lineitem, supplier, nation
WHERE l_suppkey = s_suppkey
    AND s_nationkey = n_nationkey
    AND n_name = 'CANADA'
    AND l_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%')
    AND l_shipdate >= DATE '1994-01-01'
    AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR

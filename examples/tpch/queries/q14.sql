-- Q14 Promotion Effect
-- limits: 3 items a customer, 0.7 on average in a month; a share hardly changes when more are left out
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 3)
    100.00 * SUM(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
        / SUM(l_extendedprice * (1 - l_discount)) AS promo_revenue
FROM lineitem, part
WHERE l_partkey = p_partkey
    AND l_shipdate >= DATE '1995-09-01'
    AND l_shipdate < DATE '1995-09-01' + INTERVAL '1' MONTH

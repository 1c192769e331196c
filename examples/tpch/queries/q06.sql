-- Q6 Forecasting Revenue Change
-- changed: 0.05 and 0.07 instead of 0.06 - 0.01 and 0.06 + 0.01, which is a little less than 0.07 in doubles
-- limits: 6 items a customer, 1.1 on average
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 6)
    SUM(l_extendedprice * l_discount) AS revenue
FROM lineitem
WHERE l_shipdate >= DATE '1994-01-01'
    AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR
    AND l_discount BETWEEN 0.05 AND 0.07
    AND l_quantity < 24

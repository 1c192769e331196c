-- Q17 Small-Quantity-Order Revenue
-- changed: less than a fifth of the average quantity of all items, a query of its own asked first, not of the same
--   part's items, of which there are too few
-- parameter: quantity of q17_quantity.sql, with a tenth of epsilon
-- changed: prices are clipped to 10,500, the most that 5 pieces of any part cost: less noise than with 104,949.50
-- limits: 1 item a customer, 0.006 on average
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 1)
    SUM(LEAST(l_extendedprice, 10500)) / 7.0 AS avg_yearly
FROM lineitem, part
WHERE p_partkey = l_partkey
    AND p_brand = 'Brand#23'
    AND p_container = 'MED BOX'
    AND l_quantity < 0.2 * :quantity

-- Q17, first part: the average quantity of an item
-- limits: 10 items a customer: an average hardly changes when more are left out
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 10)
    AVG(l_quantity) AS quantity
FROM lineitem

-- Q22, first part: the average balance of the customers whose balance is above 0
-- limits: none: a customer has one row
SELECT AVG(c_acctbal) AS balance
FROM customer
WHERE c_acctbal > 0.00
    AND SUBSTRING(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')

-- Q22 Global Sales Opportunity
-- changed: the average balance is a query of its own, asked first
-- parameter: balance of q22_balance.sql, with a tenth of epsilon
-- limits: none: a customer has one row; a delta, for the codes are not declared
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (delta = 1e-6)
    cntrycode,
    COUNT(*) AS numcust,
    SUM(c_acctbal) AS totacctbal
FROM (
    SELECT SUBSTRING(c_phone FROM 1 FOR 2) AS cntrycode, c_acctbal
    FROM customer
    WHERE SUBSTRING(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
        AND c_acctbal > :balance
        AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)
) AS custsale
GROUP BY cntrycode
ORDER BY cntrycode

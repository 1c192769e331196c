-- Q13 Customer Distribution
-- changed: only customers of at most 50 orders, so that the groups are public
-- limits: none: the inner query makes one row of a customer
SELECT
    c_count,
    COUNT(*) AS custdist
FROM (
    SELECT c_custkey, COUNT(o_orderkey) AS c_count
    FROM customer LEFT OUTER JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
    GROUP BY c_custkey
) AS c_orders
WHERE c_count BETWEEN 0 AND 50
GROUP BY c_count
ORDER BY custdist DESC, c_count DESC

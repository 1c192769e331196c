-- Free post-processing of COUNT(*) and SUM(hours); the same aggregate twice is one.
SELECT 100 * COUNT(hours) / COUNT(*) AS share, ROUND(SUM(hours) / COUNT(*), 1), COUNT(*) FROM people

-- Nothing is summed: a value of the range is drawn. From the top, 0.25 is 0.75 from the bottom.
SELECT MEDIAN(age), QUANTILE(age, 0.25), PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age DESC) FROM people

-- hours lies in [10, 40] and is not NULL after WHERE: U 40; a row may leave, so B max(M, D) = 40, count 1.
SELECT VARIANCE(hours) FROM people WHERE hours BETWEEN 10 AND 40

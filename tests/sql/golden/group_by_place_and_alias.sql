-- An ordinal and an alias mean the column behind them; naming it twice is naming it once.
SELECT sex AS s, member AS m, COUNT(*) AS n FROM people GROUP BY 2, s, sex

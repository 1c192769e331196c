-- score has no bounds, but the rows that pass have: [-1, 1]: U 1, B 2. year <= 2025 AND year >= 1900: U 2025, B 2025.
SELECT SUM(score), SUM(year) FROM people WHERE score BETWEEN -1 AND 1 AND year <= 2025 AND year >= 1900

-- COUNT(1) is COUNT(*); COUNT(NULL) is 0 for every table, and still measured as a count that may be NULL.
SELECT COUNT(1), COUNT(NULL), COUNT(1 / 0) FROM people

-- NULLs are not counted, so a changed row may stop counting: B 1.
SELECT COUNT(hours) FROM people

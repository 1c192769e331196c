-- The plan says whose epsilon is whose. CORR's rows are those with hours; COUNT(*) is public under B.
SELECT COUNT(*), MEDIAN(age, epsilon => 0.2), CORR(age, hours, epsilon => 0.3) FROM people

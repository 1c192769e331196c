-- Refused: one row could change the sum without limit.
SELECT SUM(score) FROM people

-- income / hours with 1 <= hours is bounded by 200000: U 200000, B 200000. CLAMP makes income / change bounded: U
-- 100, B 200.
SELECT SUM(income / hours), SUM(CLAMP(income / change, -100, 100)) FROM people

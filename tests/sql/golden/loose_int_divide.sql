-- age // 10 is in [1, 9]; the rule says |x // y| <= |x|, so [-90, 90], and nullable: sound, but wide: U 90, B 180.
SELECT SUM(age // 10) FROM people

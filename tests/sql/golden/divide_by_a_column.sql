-- income / age: [0 / 90, 200000 / 17] = [0, 11764.7] outward, NULL where income is: U 11764.7, B 11764.7.
SELECT AVG(income / age) FROM people

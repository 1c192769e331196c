-- One row more is one more: U 1. Under B the number of rows is public: 0.
SELECT COUNT(*) FROM people

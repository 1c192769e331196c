-- A column of dates can only be counted: B 1, a date may become NULL.
SELECT COUNT(born), COUNT(city) FROM people

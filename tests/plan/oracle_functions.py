"""Expressions over tests.sql.people, some of each function: what each is (n number, t text, b boolean, d date,
w timestamp), the text, and DuckDB's where the two differ on purpose.

They differ in what fails or is no number there (x / 0, a root of what is below 0, a day that does not exist, a cast),
which is NULL here; in // of floats, which truncates; and in DuckDB's wish for INTEGER where the columns are BIGINT.
"""

from __future__ import annotations

from dataclasses import dataclass

SAME = """
    t STRFTIME(w, '%Y-%m')
    t STRFTIME(v, '%d.%m.%Y %H:%M:%S')
    t STRFTIME('%b %y', e)
    t STRFTIME(w, '%H')
    t STRFTIME(v, '%I:%M %p')
    t STRFTIME(d, 'week %V of %G')
    t STRFTIME(e, '%A, %-d %B')
    t STRFTIME(v, '%j/%u%%')
    w TIME_BUCKET(INTERVAL '5 days', w)
    w TIME_BUCKET(INTERVAL 2 MONTH, v)
    d TIME_BUCKET(INTERVAL '3 weeks', e)
    w TIME_BUCKET(INTERVAL 7 HOUR, v, TIMESTAMP '2020-01-01 01:00:00')
    t SPLIT_PART(x, 'a', 1)
    t SPLIT_PART(x, '-', -1)
    t SPLIT_PART(x, '', j)
    t i || '-' || x
    t CONCAT(i, n, b, x)
    t CONCAT_WS('/', r, d, v, nb)
    t x || v || e
    n DATE_SUB('year', d, e)
    n DATE_SUB('month', v, w)
    n DATESUB('quarter', w, d)
    n DATE_SUB('week', d, v)
    n DATESUB('day', v, w)
    n DATE_SUB('decade', e, w)
    n EXTRACT(year FROM AGE(e, d)) * 12 + EXTRACT(month FROM AGE(e, d))
    n EXTRACT(day FROM AGE(v, w))
    n DATE_PART('hour', AGE(w, v)) + MINUTE(AGE(v, w)) * 100 + SECOND(AGE(v, d)) * 10000
    n QUARTER(AGE(v, w)) + EXTRACT(decade FROM AGE(v, d))
    b AGE(v, w) > INTERVAL 2 MONTH
    b AGE(d, e) BETWEEN INTERVAL '-3 years' AND INTERVAL 1 YEAR
    n EXTRACT(epoch FROM v - w)
    n EXTRACT(day FROM v - w) + EXTRACT(hour FROM w - v) * 100
    n EXTRACT(minute FROM v - d) + EXTRACT(second FROM v - w) * 100
    b v - w > INTERVAL 30 DAY
    b w - TIMESTAMP '2020-01-20' BETWEEN INTERVAL '-3 days' AND INTERVAL 1 MONTH
    b v - w <= INTERVAL 5 HOUR
    n i + j
    n i + r
    n 2 + n
    n i - n
    n r - 0.5
    n j - i - 1
    n i * j
    n r * 4
    n i * n
    n i / 4
    n r / 2
    n i / (j + 1)
    n i // 4
    n i // -3
    n n // (j + 1)
    n i % 4
    n i % -3
    n n % (j + 1)
    n -i
    n -r
    n - (n + 1)
    n ABS(i)
    n ABS(r)
    n @ n
    n SIGN(i)
    n SIGN(n - 7)
    n SIGN(j - 2)
    n FLOOR(r)
    n FLOOR(i / 10)
    n FLOOR(u)
    n CEIL(r)
    n CEILING(i / 10)
    n CEIL(-r)
    n ROUND(r)
    n ROUND(u, 0)
    n ROUND(r * 1.5, 1)
    n ROUND(i, -1)
    n TRUNC(r)
    n TRUNC(-r)
    n TRUNC(u)
    n SQRT(j)
    n SQRT(ABS(r))
    n SQRT(n + 1)
    n CBRT(i)
    n CBRT(r)
    n CBRT(n)
    n SIN(i)
    n SIN(r)
    n COS(j + 1)
    n COS(r)
    n COS(ABS(n))
    n SIN(n)
    n TAN(i)
    n TAN(r)
    n TAN(n)
    n EXP(j)
    n EXP(r)
    n EXP(-j / 2)
    n LN(j + 1)
    n LN(n + 0.5)
    n LN(ABS(r) + 1)
    n LOG(j + 1)
    n LOG10(n + 0.5)
    n LOG10(ABS(i) + 1)
    n LOG2(j + 1)
    n LOG2(n + 0.5)
    n LOG2(ABS(r) + 2)
    n LOG(2, j + 1)
    n LOG(3, n + 0.5)
    n LOG(j + 2, 10)
    n POWER(i, 2)
    n POW(r, 3)
    n POWER(j + 1, 0.5)
    n POWER(2, j)
    n DEGREES(j)
    n DEGREES(r)
    n DEGREES(i / 10)
    n RADIANS(i)
    n RADIANS(r)
    n RADIANS(n)
    n PI() + j
    n j * PI()
    n ROUND(PI() * r, 2)
    b i = j
    b i = 4
    b x = 'abc'
    b i <> j
    b x != 'abc'
    b d <> DATE '2020-02-01'
    b i < j
    b x < 'b'
    b d < e
    b i <= n
    b r <= 2.5
    b w <= v
    b i > r
    b x > o
    b e > DATE '2001-01-01'
    b i >= 3
    b r >= n
    b w >= TIMESTAMP '2020-02-01 00:00:00'
    b n IS DISTINCT FROM 7
    b nb IS DISTINCT FROM b
    b d IS DISTINCT FROM e
    b n IS NOT DISTINCT FROM 7
    b x IS NOT DISTINCT FROM o
    b n IS NOT DISTINCT FROM NULL
    b i IN (1, 2, 3, NULL)
    b x IN ('abc', 'ABC', '')
    b d NOT IN (DATE '2020-02-01', DATE '2020-02-03')
    b i IN (j, n)
    b n IS NULL
    b x IS NOT NULL
    b d IS NULL
    b (nb AND b) IS NULL
    b b AND nb
    b i > 3 AND n > 3
    b nb AND r > 0 AND x > 'a'
    b b OR nb
    b i > 10 OR n > 50
    b nb OR d IS NULL OR w IS NULL
    b NOT nb
    b NOT (i > 3)
    b NOT (nb OR n > 50)
    b nb IS TRUE
    b (n > 7) IS TRUE
    b (x LIKE 'a%') IS NOT TRUE
    b nb IS FALSE
    b (n > 7) IS NOT FALSE
    b (d > e) IS FALSE
    b i BETWEEN 1 AND 5
    b r NOT BETWEEN -1 AND j
    b d BETWEEN DATE '2020-02-01' AND DATE '2020-02-15'
    b x BETWEEN 'a' AND 'b'
    n CASE WHEN i > 3 THEN 1 ELSE 0 END
    n CASE WHEN n > 50 THEN 2 WHEN n > 5 THEN 1 END
    t CASE j WHEN 0 THEN 'none' WHEN 1 THEN 'one' ELSE 'many' END
    t CASE WHEN x = 'abc' THEN o WHEN x IS NULL THEN 'null' ELSE x END
    b CASE WHEN i > 3 THEN nb ELSE b END
    d CASE WHEN b THEN d ELSE e END
    n IF(i > 3, j, n)
    t IF(nb, x, o)
    n COALESCE(n, 0)
    t COALESCE(x, o, 'none')
    d COALESCE(d, e)
    n COALESCE(NULL, r, n, i)
    n IFNULL(n, 7)
    n NULLIF(j, 2)
    t NULLIF(x, 'abc')
    b NULLIF(nb, b)
    n LEAST(i, n)
    n LEAST(r, 2, j)
    d LEAST(d, e)
    n GREATEST(i, n)
    n GREATEST(r, NULL, 0)
    w GREATEST(w, v)
    n CAST(r AS INTEGER)
    n CAST(b AS INTEGER)
    n CAST(u AS INT)
    n i::DOUBLE / 3
    n CAST(nb AS DOUBLE)
    n TRY_CAST(x AS DOUBLE)
    n CAST(j AS DOUBLE)
    n CAST(r AS FLOAT)
    n TRY_CAST(x AS FLOAT)
    n CAST(i AS FLOAT)
    n CAST(nb AS FLOAT)
    n CAST(r AS DECIMAL(5, 1))
    n CAST(i AS DECIMAL(4, 0))
    n CAST(b AS DECIMAL(3, 1))
    n TRY_CAST(x AS DECIMAL(6, 2))
    b CAST(i AS BOOLEAN)
    b r::BOOLEAN
    b CAST(j AS BOOLEAN)
    b TRY_CAST(x AS BOOLEAN)
    b TRY_CAST(CAST(j AS VARCHAR) AS BOOLEAN)
    b TRY_CAST(o AS BOOLEAN)
    n TRY_CAST(r * 40 AS TINYINT)
    n TRY_CAST(n AS TINYINT)
    n TRY_CAST(i * 20 AS TINYINT)
    n TRY_CAST(i * 5000 AS SMALLINT)
    n TRY_CAST(r * 9000 AS SMALLINT)
    n CAST(nb AS SMALLINT)
    n TRY_CAST(u AS BIGINT)
    n CAST(b AS BIGINT)
    n CAST(r AS BIGINT)
    n TRY_CAST(i AS UTINYINT)
    n TRY_CAST(n * 3 AS UTINYINT)
    n CAST(b AS UTINYINT)
    n TRY_CAST(i AS USMALLINT)
    n TRY_CAST(r * 20000 AS USMALLINT)
    n CAST(j AS USMALLINT)
    n TRY_CAST(i AS UINTEGER)
    n TRY_CAST(r AS UINTEGER)
    n CAST(j AS UINTEGER)
    n TRY_CAST(i AS UBIGINT)
    n TRY_CAST(u AS UBIGINT)
    n CAST(j AS UBIGINT)
    n TRY_CAST(x AS TINYINT)
    n TRY_CAST(o AS TINYINT)
    n TRY_CAST(x || '0' AS TINYINT)
    n TRY_CAST(x AS SMALLINT)
    n TRY_CAST(o AS SMALLINT)
    n TRY_CAST(x || '000' AS SMALLINT)
    n TRY_CAST(x AS INTEGER)
    n TRY_CAST(o AS INT)
    n TRY_CAST(TRIM(x) AS INTEGER)
    n TRY_CAST(x AS BIGINT)
    n TRY_CAST(o AS BIGINT)
    n TRY_CAST(CAST(i AS TEXT) AS BIGINT)
    n TRY_CAST(x AS UTINYINT)
    n TRY_CAST(x || '0' AS UTINYINT)
    n TRY_CAST(CAST(i AS TEXT) AS UTINYINT)
    n TRY_CAST(x AS USMALLINT)
    n TRY_CAST(x || '0' AS USMALLINT)
    n TRY_CAST(CAST(i AS TEXT) AS USMALLINT)
    n TRY_CAST(x AS UINTEGER)
    n TRY_CAST(x || '0' AS UINTEGER)
    n TRY_CAST(CAST(i AS TEXT) AS UINTEGER)
    n TRY_CAST(x AS UBIGINT)
    n TRY_CAST(x || '0' AS UBIGINT)
    n TRY_CAST(CAST(i AS TEXT) AS UBIGINT)
    n TRY_CAST(CAST(n AS VARCHAR) AS DOUBLE)
    n TRY_CAST(o AS DOUBLE)
    n TRY_CAST(o AS FLOAT)
    n TRY_CAST(x || '5' AS FLOAT)
    n TRY_CAST(o AS DECIMAL(4, 1))
    n TRY_CAST(x || '5' AS DECIMAL(18, 3))
    t CAST(i AS TEXT)
    t n::VARCHAR
    t CAST(j + 1 AS VARCHAR) || '!'
    t CAST(r AS VARCHAR)
    t CAST(u AS TEXT)
    t CAST(r / 4 AS VARCHAR)
    t CAST(b AS VARCHAR)
    t nb::TEXT
    t CAST(i > 3 AS VARCHAR)
    t CAST(d AS VARCHAR)
    t e::TEXT
    t CAST(w::DATE AS VARCHAR)
    t CAST(w AS VARCHAR)
    t v::TEXT
    t CAST(d::TIMESTAMP AS VARCHAR)
    d TRY_CAST(x AS DATE)
    d TRY_CAST(CAST(d AS VARCHAR) AS DATE)
    d TRY_CAST('2020-01-' || CAST(i AS VARCHAR) AS DATE)
    w TRY_CAST(x AS TIMESTAMP)
    w TRY_CAST(CAST(w AS VARCHAR) AS TIMESTAMP)
    w TRY_CAST(x || ' 10:11:12' AS TIMESTAMP)
    w CAST(d AS TIMESTAMP)
    w e::TIMESTAMP
    w COALESCE(CAST(d AS TIMESTAMP), w)
    d CAST(w AS DATE)
    d v::DATE
    b CAST(w AS DATE) = d
    n d - DATE '2020-01-01'
    n d - e
    n DATE '2020-03-05' - e
    d MAKE_DATE(2020 + j, 1 + j, 1)
    d MAKE_DATE(2020, 2, 28 - j)
    d MAKE_DATE(1999 + i, 12, 31)
    d LAST_DAY(d)
    d LAST_DAY(e)
    d LAST_DAY(w)
    d LAST_DAY(v)
    d LAST_DAY(CAST(w AS DATE))
    d LAST_DAY(CAST(d AS TIMESTAMP))
    t DAYNAME(d)
    t DAYNAME(e)
    t DAYNAME(w)
    t DAYNAME(v)
    t DAYNAME(CAST(w AS DATE))
    t DAYNAME(CAST(d AS TIMESTAMP))
    t MONTHNAME(d)
    t MONTHNAME(e)
    t MONTHNAME(w)
    t MONTHNAME(v)
    t MONTHNAME(CAST(w AS DATE))
    t MONTHNAME(CAST(d AS TIMESTAMP))
    t UPPER(x)
    t UPPER(o)
    t UPPER(TRIM(x))
    t LOWER(x)
    t LOWER(o)
    t LOWER(x || 'X')
    t TRIM(x)
    t TRIM(x, 'a')
    t TRIM(BOTH 'ab' FROM x)
    t LTRIM(x)
    t LTRIM(x, 'a')
    t TRIM(LEADING 'a' FROM x)
    t RTRIM(x)
    t RTRIM(x, 'c')
    t TRIM(TRAILING 'c' FROM x)
    n LENGTH(x)
    n LEN(o)
    n CHAR_LENGTH(TRIM(x))
    n STRPOS(x, 'b')
    n INSTR(o, 's')
    n POSITION('a' IN x)
    t SUBSTRING(x, 2)
    t SUBSTR(x, 1, 2)
    t SUBSTRING(x FROM 2 FOR 1)
    t SUBSTRING(x, -2)
    t LEFT(x, 2)
    t LEFT(o, -1)
    t LEFT(x, 0)
    t LEFT(x, i)
    t RIGHT(x, 2)
    t RIGHT(o, -1)
    t RIGHT(x, 0)
    t REVERSE(x)
    t REVERSE(o)
    b REVERSE(x) = x
    t x || o
    t x || '-' || 'y'
    t 'a' || o
    t CONCAT(x, o)
    t CONCAT('<', x, '>')
    t CONCAT(o)
    t CONCAT_WS('-', x, o)
    t CONCAT_WS(', ', o, 'z', x)
    t CONCAT_WS(x, o, o)
    t REPLACE(x, 'a', 'e')
    t REPLACE(o, '', 'z')
    t REPLACE(x, 'ab', '')
    t REPEAT(o, 2)
    t REPEAT(x, j)
    t REPEAT('ab', j)
    b STARTS_WITH(x, 'a')
    b REGEXP_MATCHES(x, 'a+b')
    b REGEXP_MATCHES(x, '^[a-c]')
    b REGEXP_MATCHES(UPPER(x), 'B$')
    b REGEXP_FULL_MATCH(x, 'a.*')
    b x SIMILAR TO '(aa|b)+'
    b REGEXP_FULL_MATCH(LOWER(x), '[a-z]+')
    t REGEXP_EXTRACT(x, '[ab]+')
    t REGEXP_EXTRACT(x, '(a)(b?)', 2)
    t REGEXP_EXTRACT(LOWER(x), 'a.')
    t REGEXP_REPLACE(x, 'a', 'z')
    t REGEXP_REPLACE(x, '(a)(.)', '\\2\\1')
    t REGEXP_REPLACE(UPPER(x), 'B+', '')
    t REGEXP_REPLACE(x, 'a', 'z', 'g')
    t REGEXP_REPLACE(x, '[ab]', '-', 'g')
    t REGEXP_REPLACE(LOWER(x), '.', 'q', 'g')
    b PREFIX(x, 'A')
    b STARTS_WITH(x, o)
    b ENDS_WITH(x, 'c')
    b SUFFIX(o, 's')
    b ENDS_WITH(x, o)
    b CONTAINS(x, 'b')
    b CONTAINS(o, '''')
    b CONTAINS(x, o)
    b x LIKE 'a%'
    b x NOT LIKE '_b_'
    b x LIKE 'a!%c' ESCAPE '!'
    b x LIKE o
    b x ILIKE 'AB%'
    b o NOT ILIKE 'X'
    b x ILIKE '%!%%' ESCAPE '!'
    b x ILIKE '%SS%'
    n EXTRACT(century FROM d)
    n CENTURY(e)
    n EXTRACT(century FROM CAST(w AS DATE))
    n EXTRACT(century FROM w)
    n CENTURY(v)
    n DATE_PART('century', w)
    n EXTRACT(decade FROM d)
    n DECADE(e)
    n DATE_PART('decade', d)
    n EXTRACT(decade FROM w)
    n DECADE(v)
    n DATE_PART('decade', v)
    n EXTRACT(year FROM d)
    n YEAR(e)
    n DATE_PART('year', d)
    n EXTRACT(year FROM w)
    n YEAR(v)
    n DATE_PART('year', v)
    n EXTRACT(isoyear FROM d)
    n ISOYEAR(e)
    n DATE_PART('isoyear', e)
    n EXTRACT(isoyear FROM w)
    n ISOYEAR(v)
    n DATE_PART('isoyear', w)
    n EXTRACT(quarter FROM d)
    n QUARTER(e)
    n DATE_PART('quarter', d)
    n EXTRACT(quarter FROM w)
    n QUARTER(v)
    n DATE_PART('quarter', v)
    n EXTRACT(month FROM d)
    n MONTH(e)
    n DATE_PART('month', d)
    n EXTRACT(month FROM w)
    n MONTH(v)
    n DATE_PART('month', v)
    n EXTRACT(week FROM d)
    n WEEK(e)
    n WEEKOFYEAR(d)
    n EXTRACT(week FROM w)
    n WEEK(v)
    n DATE_PART('week', w)
    n EXTRACT(day FROM d)
    n DAY(e)
    n DAYOFMONTH(d)
    n EXTRACT(day FROM w)
    n DAY(v)
    n DATE_PART('day', w)
    n EXTRACT(doy FROM d)
    n DAYOFYEAR(e)
    n DATE_PART('doy', d)
    n EXTRACT(dayofyear FROM w)
    n DAYOFYEAR(v)
    n DATE_PART('doy', w)
    n EXTRACT(dow FROM d)
    n DAYOFWEEK(e)
    n WEEKDAY(d)
    n EXTRACT(dow FROM w)
    n DAYOFWEEK(v)
    n DATE_PART('dayofweek', w)
    n EXTRACT(isodow FROM d)
    n ISODOW(e)
    n DATE_PART('isodow', d)
    n EXTRACT(isodow FROM w)
    n ISODOW(v)
    n DATE_PART('isodow', w)
    n EXTRACT(hour FROM d)
    n HOUR(e)
    n DATE_PART('hour', d)
    n EXTRACT(hour FROM w)
    n HOUR(v)
    n DATE_PART('hour', w)
    n EXTRACT(minute FROM d)
    n MINUTE(e)
    n DATE_PART('minute', d)
    n EXTRACT(minute FROM w)
    n MINUTE(v)
    n DATE_PART('minute', w)
    n EXTRACT(second FROM d)
    n SECOND(e)
    n DATE_PART('second', d)
    n EXTRACT(second FROM w)
    n SECOND(v)
    n DATE_PART('second', w)
    n EXTRACT(millisecond FROM d)
    n MILLISECOND(e)
    n DATE_PART('millisecond', d)
    n EXTRACT(millisecond FROM w)
    n MILLISECOND(v)
    n DATE_PART('millisecond', w)
    n EXTRACT(microsecond FROM d)
    n MICROSECOND(e)
    n DATE_PART('microsecond', d)
    n EXTRACT(microsecond FROM w)
    n MICROSECOND(v)
    n DATE_PART('microsecond', w)
    n EXTRACT(epoch FROM d)
    n EPOCH(e)
    n DATE_PART('epoch', d)
    n EXTRACT(epoch FROM w)
    n EPOCH(v)
    n DATE_PART('epoch', w)
    w DATE_TRUNC('century', w)
    w DATE_TRUNC('century', v)
    w DATE_TRUNC('century', d)
    w DATE_TRUNC('decade', w)
    w DATE_TRUNC('decade', v)
    w DATE_TRUNC('decade', e)
    w DATE_TRUNC('year', w)
    w DATE_TRUNC('year', v)
    w DATE_TRUNC('year', d)
    w DATE_TRUNC('quarter', w)
    w DATE_TRUNC('quarter', v)
    w DATE_TRUNC('quarter', e)
    w DATE_TRUNC('month', w)
    w DATE_TRUNC('month', v)
    w DATE_TRUNC('month', d)
    w DATE_TRUNC('week', w)
    w DATE_TRUNC('week', v)
    w DATE_TRUNC('week', e)
    w DATE_TRUNC('day', w)
    w DATE_TRUNC('day', v)
    w DATE_TRUNC('day', d)
    w DATE_TRUNC('hour', w)
    w DATE_TRUNC('hour', v)
    w DATE_TRUNC('hour', w + INTERVAL 30 MINUTE)
    w DATE_TRUNC('minute', w)
    w DATE_TRUNC('minute', v)
    w DATE_TRUNC('minute', w + INTERVAL 30 SECOND)
    w DATE_TRUNC('second', w)
    w DATE_TRUNC('second', v)
    w DATE_TRUNC('second', v + INTERVAL 1 MINUTE)
    w DATE_TRUNC('millisecond', w)
    w DATE_TRUNC('millisecond', v)
    w DATE_TRUNC('millisecond', v + INTERVAL 1 MINUTE)
    w DATE_TRUNC('microsecond', w)
    w DATE_TRUNC('microsecond', v)
    w DATE_TRUNC('microsecond', v + INTERVAL 1 MINUTE)
    w w + INTERVAL 1 CENTURY
    w v - INTERVAL 1 CENTURY
    w d + INTERVAL '1' CENTURY
    w w + INTERVAL 1 DECADE
    w v - INTERVAL 1 DECADE
    w e + INTERVAL '2' DECADES
    w w + INTERVAL 1 YEAR
    w v - INTERVAL 1 YEAR
    w e + INTERVAL '4' YEARS
    w w + INTERVAL 1 QUARTER
    w v - INTERVAL 2 QUARTER
    w d + INTERVAL '1' QUARTER
    w w + INTERVAL 1 MONTH
    w v - INTERVAL 1 MONTH
    w e + INTERVAL '18' MONTHS
    w w + INTERVAL (j) MONTH
    w w + INTERVAL 1 WEEK
    w v - INTERVAL 2 WEEK
    w d + INTERVAL '1' WEEK
    w w + INTERVAL 1 DAY
    w v - INTERVAL 1 DAY
    w d + INTERVAL '10' DAYS
    w d + INTERVAL (i) DAY
    w w + INTERVAL 1 HOUR
    w v - INTERVAL 36 HOUR
    w d + INTERVAL (j) HOUR
    w w + INTERVAL 1 MINUTE
    w v - INTERVAL 90 MINUTE
    w d + INTERVAL '5' MINUTES
    w w + INTERVAL 1 SECOND
    w v - INTERVAL 90 SECOND
    w d + INTERVAL (j) SECOND
    w w + INTERVAL 1 MILLISECOND
    w v - INTERVAL 90 MILLISECOND
    w d + INTERVAL '5' MILLISECONDS
    w w + INTERVAL 1 MICROSECOND
    w v - INTERVAL 2 MICROSECOND
    w d + INTERVAL '5' MICROSECONDS
    n TRUNC(r * 3, 1)
    d d + 3
    d d - 3
    t LPAD(x, 4, '*')
    t RPAD(x, 4, '*')
    t SUBSTRING(x, i, j)
    n DATE_DIFF('century', v, w)
    n DATEDIFF('century', e, d)
    n DATE_DIFF('century', DATE '1999-12-31', d)
    n DATE_DIFF('decade', v, w)
    n DATEDIFF('decade', e, d)
    n DATE_DIFF('decade', DATE '1999-12-31', d)
    n DATE_DIFF('year', v, w)
    n DATEDIFF('year', e, d)
    n DATE_DIFF('year', DATE '1999-12-31', d)
    n DATE_DIFF('quarter', v, w)
    n DATEDIFF('quarter', e, d)
    n DATE_DIFF('quarter', DATE '2019-12-31', d)
    n DATE_DIFF('month', v, w)
    n DATEDIFF('month', e, d)
    n DATE_DIFF('month', DATE '2019-12-31', d)
    n DATE_DIFF('week', v, w)
    n DATEDIFF('week', e, d)
    n DATE_DIFF('week', DATE '2019-12-31', d)
    n DATE_DIFF('day', v, w)
    n DATEDIFF('day', e, d)
    n DATE_DIFF('day', DATE '2019-12-31', d)
    n DATE_DIFF('hour', v, w)
    n DATEDIFF('hour', e, d)
    n DATE_DIFF('hour', DATE '2019-12-31', d)
    n DATE_DIFF('minute', v, w)
    n DATEDIFF('minute', e, d)
    n DATE_DIFF('minute', TIMESTAMP '2020-01-01 00:00:30', w)
    n DATE_DIFF('second', v, w)
    n DATEDIFF('second', e, d)
    n DATE_DIFF('second', TIMESTAMP '2020-01-01 00:00:30', w)
    n DATE_DIFF('millisecond', v, w)
    n DATEDIFF('millisecond', e, d)
    n DATE_DIFF('millisecond', TIMESTAMP '2020-01-01 00:00:30', w)
    n DATE_DIFF('microsecond', v, w)
    n DATEDIFF('microsecond', e, d)
    n DATE_DIFF('microsecond', TIMESTAMP '2020-01-01 00:00:30', w)
"""

DIFFERENT = [
    ("n", "i / j", "i / NULLIF(j, 0)"),
    ("n", "i // j", "i // NULLIF(j, 0)"),
    ("n", "r // 0.5", "TRUNC(r / 0.5)"),
    ("n", "i % j", "i % NULLIF(j, 0)"),
    ("n", "SQRT(i)", "CASE WHEN i >= 0 THEN SQRT(i) END"),
    ("n", "SQRT(r - 2)", "CASE WHEN r >= 2 THEN SQRT(r - 2) END"),
    ("n", "LN(i)", "CASE WHEN i > 0 THEN LN(i) END"),
    ("n", "LOG10(r)", "CASE WHEN r > 0 THEN LOG10(r) END"),
    ("n", "LOG2(n)", "CASE WHEN n > 0 THEN LOG2(n) END"),
    ("n", "LOG(j, i)", "CASE WHEN i > 0 AND j > 1 THEN LOG10(i) / LOG10(j) END"),
    ("n", "POWER(j, -1)", "CASE WHEN j <> 0 THEN POWER(j, -1) END"),
    ("n", "POWER(i, 0.5)", "CASE WHEN i >= 0 THEN POWER(i, 0.5) END"),
    ("n", "TRUNC(i, -1)", "i // 10 * 10"),
    ("n", "CLAMP(i, 0, 5)", "LEAST(GREATEST(i, 0), 5)"),
    ("n", "CLAMP(n, j, 60)", "CASE WHEN n IS NOT NULL THEN LEAST(GREATEST(n, j), 60) END"),
    ("n", "CLAMP(r, -0.5, 0.5)", "CASE WHEN r IS NOT NULL THEN LEAST(GREATEST(r, -0.5), 0.5) END"),
    ("n", "MOD(i, 3)", "i % 3"),
    ("n", "NVL(n, j)", "COALESCE(n, j)"),
    ("n", "CAST(x AS INTEGER)", "TRY_CAST(x AS INTEGER)"),
    ("n", "CAST(x AS DOUBLE)", "TRY_CAST(x AS DOUBLE)"),
    ("n", "CAST(n AS TINYINT)", "TRY_CAST(n AS TINYINT)"),
    ("b", "CAST(x AS BOOLEAN)", "TRY_CAST(x AS BOOLEAN)"),
    ("d", "CAST(x AS DATE)", "TRY_CAST(x AS DATE)"),
    ("w", "x::TIMESTAMP", "TRY_CAST(x AS TIMESTAMP)"),
    ("d", "d + i", "d + CAST(i AS INTEGER)"),
    ("d", "j + e", "e + CAST(j AS INTEGER)"),
    ("d", "d - i", "d - CAST(i AS INTEGER)"),
    ("d", "e - j", "e - CAST(j AS INTEGER)"),
    ("d", "MAKE_DATE(2020, 2, i)", "TRY_CAST('2020-2-' || i AS DATE)"),
    ("t", "REPEAT(x, -1)", "CASE WHEN x IS NOT NULL THEN '' END"),
    ("t", "LPAD(o, j, 'ab')", "LPAD(o, CAST(j AS INTEGER), 'ab')"),
    ("t", "LPAD(x, 4, '')", "CASE WHEN LENGTH(x) >= 4 THEN LEFT(x, 4) END"),
    ("t", "RPAD(o, j, 'ab')", "RPAD(o, CAST(j AS INTEGER), 'ab')"),
    ("t", "RPAD(x, -1, '*')", "CASE WHEN x IS NOT NULL THEN '' END"),
]


@dataclass(frozen=True)
class Written:
    """An expression in both spellings and the letter of what it is."""

    kind: str
    ours: str
    theirs: str


def written() -> list[Written]:
    """All of them, in order."""
    lines = [line.strip().split(" ", 1) for line in SAME.strip().splitlines()]
    return [*(Written(kind, text, text) for kind, text in lines), *(Written(*each) for each in DIFFERENT)]

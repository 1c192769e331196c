"""Queries over tests.sql.people beside DuckDB's text for the same meaning, None where that is the same text.

Where the two texts differ the language does on purpose: SUM over no rows is 0, AVG takes booleans, a cast that fails
and x / 0 are NULL, values outside a declared list of keys are NULL where the list has NULL, and else are left out.
A public group that no row reaches is dpsql's alone: texts by group say how many groups are shown.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

LISTED_S = "CASE WHEN s IN ('a', 'b', 'zz') THEN s END"
"""The key `s` as dpsql takes it, whose list has NULL."""
LISTED_C = "c IN ('red', 'blue', 'none of these')"
"""The rows that GROUP BY c keeps: the list has no NULL."""

# One row, the same text for both.
WHOLE = """
    SELECT COUNT(*) FILTER (WHERE i > 3), COUNT(*) FROM t
    SELECT COUNT(n) FILTER (WHERE i > 3), SUM(n) FILTER (WHERE b) FROM t
    SELECT AVG(n) FILTER (WHERE n > 5), AVG(n) FROM t
    SELECT COUNT(*) FILTER (WHERE nb), COUNT(*) FILTER (WHERE NOT nb), COUNT(*) FILTER (WHERE nb IS NULL) FROM t
    SELECT SUM(i) FILTER (WHERE x LIKE 'a%'), COUNT(x) FILTER (WHERE x LIKE 'a%') FROM t WHERE j > 0
    SELECT COUNT(*) FILTER (WHERE d BETWEEN DATE '2020-02-01' AND DATE '2020-02-20') FROM t
    SELECT COUNT_IF(i > 3), COUNT_IF(nb), COUNT_IF(NOT nb), COUNT_IF(n IS NULL) FROM t
    SELECT COUNT_IF(x ILIKE '%A%'), COUNT_IF(x IN ('abc', NULL)), COUNT_IF(d > e) FROM t
    SELECT COUNT_IF(b) FILTER (WHERE nb), COUNT_IF(b AND nb) FROM t
    SELECT COUNTIF(i > 3 OR r > 0) FROM t
    SELECT SUM(CASE WHEN b THEN i ELSE 0 END), SUM(CASE WHEN b THEN i END) FROM t
    SELECT SUM(CASE WHEN n IS NULL THEN 1 ELSE 0 END), COUNT(CASE WHEN n IS NULL THEN 1 END) FROM t
    SELECT AVG(CASE WHEN i > 3 THEN r ELSE i END), COUNT(CASE WHEN i > 3 THEN r ELSE i END) FROM t
    SELECT SUM(CASE j WHEN 0 THEN 10 WHEN 1 THEN 20 ELSE -5 END) FROM t
    SELECT SUM(CASE j WHEN 0 THEN n WHEN NULL THEN 1000 END), COUNT(CASE j WHEN 0 THEN n END) FROM t
    SELECT SUM(CASE WHEN i < 0 THEN CASE WHEN b THEN 1 ELSE 2 END ELSE CASE WHEN b THEN 3 END END) FROM t
    SELECT SUM(CASE WHEN nb THEN 1 WHEN NOT nb THEN 2 ELSE 3 END) FROM t
    SELECT SUM(CASE WHEN NULL THEN 1 ELSE 2 END), SUM(CASE WHEN TRUE THEN i END) FROM t
    SELECT SUM(CASE WHEN i > 0 THEN n // i ELSE n END) FROM t
    SELECT SUM(CASE WHEN u BETWEEN -5 AND 5 THEN u WHEN u > 5 THEN 5 WHEN u < -5 THEN -5 END) FROM t
    SELECT COUNT(*) FROM t WHERE CASE WHEN b THEN i > 5 ELSE n > 5 END
    SELECT COUNT(*) FROM t WHERE CASE x WHEN 'abc' THEN b WHEN 'ABC' THEN NOT b END
    SELECT COUNT(*) FROM t WHERE CASE WHEN i > 3 THEN 'big' ELSE 'small' END = 'big'
    SELECT COUNT(*) FROM t WHERE IF(b, i, n) > 4
    SELECT SUM(IF(i > 3, 1, 0)), SUM(IF(nb, 1, NULL)), SUM(IF(n > 5, n, -n)) FROM t
    SELECT COUNT(*) FROM t WHERE x IS DISTINCT FROM o
    SELECT COUNT(*) FROM t WHERE x IS NOT DISTINCT FROM o
    SELECT COUNT(*) FROM t WHERE (n > 5) IS DISTINCT FROM TRUE
    SELECT COUNT(*) FROM t WHERE d IS DISTINCT FROM DATE '2020-02-01' AND r IS NOT DISTINCT FROM NULL
    SELECT COUNT(*) FROM t WHERE NOT (n IS DISTINCT FROM NULL)
    SELECT COUNT(*) FROM t WHERE x LIKE 'a%' OR x LIKE '%c'
    SELECT COUNT(*) FROM t WHERE x LIKE '___'
    SELECT COUNT(*) FROM t WHERE x LIKE ''
    SELECT COUNT(*) FROM t WHERE x LIKE '%'
    SELECT COUNT(*) FROM t WHERE NOT x LIKE '%a%'
    SELECT COUNT(*) FROM t WHERE x LIKE '%\\_%' ESCAPE '\\' OR x LIKE '%$%%' ESCAPE '$'
    SELECT COUNT(*) FROM t WHERE x ILIKE 'ab_' AND x NOT ILIKE 'abc'
    SELECT COUNT(*) FROM t WHERE LOWER(x) LIKE LOWER('A%')
    SELECT COUNT(*) FROM t WHERE (x LIKE NULL) IS NULL
    SELECT COUNT(*) FROM t WHERE s LIKE x OR o LIKE s
    SELECT COUNT(*) FROM t WHERE LENGTH(x) BETWEEN 2 AND 3
    SELECT COUNT(*) FROM t WHERE TRIM(x) IN ('Ab', '12') AND UPPER(TRIM(x)) <> '12'
    SELECT COUNT(*) FROM t WHERE x || o = 'abcx' OR CONCAT(x, o) = 'abc'
    SELECT COUNT(*) FROM t WHERE SUBSTRING(x, 1, 1) = 'a' AND RIGHT(x, 1) <> 'c'
    SELECT COUNT(*) FROM t WHERE REPLACE(x, 'a', '') = 'bc' OR REVERSE(x) = 'baa'
    SELECT COUNT(*) FROM t WHERE STARTS_WITH(x, 'a') AND NOT CONTAINS(x, 'b')
    SELECT SUM(LEAST(LENGTH(x), 20)), AVG(LEAST(LENGTH(o), 20)) FROM t
    SELECT SUM(LEAST(STRPOS(x, 'b'), 9)), SUM(LEAST(LENGTH(REPLACE(x, 'a', 'zz')), 20)) FROM t
    SELECT COUNT(*) FROM t WHERE d = DATE '2020-02-01'
    SELECT COUNT(*) FROM t WHERE d = '2020-02-01'
    SELECT COUNT(*) FROM t WHERE d > '2020-02-01' AND d <= '2020-03-01'
    SELECT COUNT(*) FROM t WHERE d IN ('2020-02-01', '2020-02-03')
    SELECT COUNT(*) FROM t WHERE d NOT IN (DATE '2020-02-01', DATE '2020-02-03')
    SELECT COUNT(*) FROM t WHERE d BETWEEN '2020-02-01' AND '2020-02-10'
    SELECT COUNT(*) FROM t WHERE d NOT BETWEEN DATE '2020-02-01' AND e
    SELECT COUNT(*) FROM t WHERE w < '2020-01-15 12:30:00' OR w >= TIMESTAMP '2020-02-20 00:00:00'
    SELECT COUNT(*) FROM t WHERE w > d
    SELECT COUNT(*) FROM t WHERE v <= CAST(e AS TIMESTAMP)
    SELECT COUNT(*) FROM t WHERE d IS NULL OR w IS NULL
    SELECT COUNT(d), COUNT(e), COUNT(w), COUNT(v), COUNT(COALESCE(d, e)), COUNT(GREATEST(d, e)) FROM t
    SELECT COUNT(*) FROM t WHERE EXTRACT(month FROM d) = 2 AND EXTRACT(dow FROM d) IN (0, 6)
    SELECT COUNT(*) FROM t WHERE YEAR(e) = 2020 OR YEAR(v) < 1900
    SELECT SUM(DAY(d)), AVG(MONTH(d)), SUM(EXTRACT(doy FROM d)) FROM t
    SELECT SUM(HOUR(w)), SUM(MINUTE(w)), SUM(SECOND(w)), AVG(EXTRACT(millisecond FROM w)) FROM t
    SELECT SUM(DATE_DIFF('day', DATE '2020-01-25', d)), AVG(d - DATE '2020-01-25') FROM t
    SELECT SUM(DATE_DIFF('hour', TIMESTAMP '2020-01-01 00:00:00', w)) FROM t
    SELECT COUNT(*) FROM t WHERE DATE_DIFF('day', d, e) > 0
    SELECT COUNT(*) FROM t WHERE d + INTERVAL 1 MONTH > TIMESTAMP '2020-03-15 00:00:00'
    SELECT COUNT(*) FROM t WHERE w - INTERVAL 12 HOUR < TIMESTAMP '2020-01-20 00:00:00'
    SELECT COUNT(*) FROM t WHERE DATE_TRUNC('month', d) = DATE '2020-02-01'
    SELECT COUNT(*) FROM t WHERE LAST_DAY(d) = DATE '2020-02-29' AND DAYNAME(d) = 'Saturday'
    SELECT AVG(DATE_DIFF('year', e, d)) FROM t WHERE e BETWEEN DATE '2000-01-01' AND DATE '2020-12-31'
    SELECT COUNT(*) FROM t WHERE CAST(w AS DATE) = d OR CAST(d AS TIMESTAMP) = v
    SELECT COUNT(*), SUM(TRY_CAST(x AS INTEGER)) FROM t WHERE TRY_CAST(x AS INTEGER) BETWEEN 0 AND 100
    SELECT COUNT(*) FROM t WHERE TRY_CAST(x AS DOUBLE) < 0 OR TRY_CAST(x AS BOOLEAN)
    SELECT SUM(CAST(r AS INTEGER)), SUM(r::INTEGER), AVG(CAST(b AS INTEGER)), SUM(nb::INT) FROM t
    SELECT COUNT(*) FROM t WHERE CAST(i AS TEXT) LIKE '1%' OR CAST(b AS TEXT) = 'true'
    SELECT SUM(CAST(i AS DOUBLE) / 3), SUM(CAST(i AS DECIMAL(6, 2))) FROM t
    SELECT COUNT(*) FROM t WHERE CAST(d AS TEXT) >= '2020-02-15' AND CAST(w AS VARCHAR) LIKE '2020%'
    SELECT SUM(SIGN(i)), SUM(SIGN(r)), SUM(TRUNC(r)), SUM(TRUNC(-r)), SUM(SQRT(j)), SUM(POWER(i, 2)) FROM t
    SELECT AVG(LN(j + 1)), AVG(EXP(-j)), SUM(LOG10(n + 1)), SUM(LOG2(j + 1)), SUM(CBRT(i)) FROM t
    SELECT SUM(ROUND(r, 1)), SUM(ROUND(i, -1)), SUM(ROUND(r * PI(), 2)), SUM(CEIL(r) - FLOOR(r)) FROM t
    SELECT COUNT(*) FROM t WHERE SQRT(ABS(r)) > 1 AND EXP(j) < 60 AND LN(n + 1) < 4
    SELECT SUM(i) FROM t WHERE i IN (1, 2, 3) OR i IN (7, 8) OR i BETWEEN 15 AND 30
    SELECT COUNT(*) FILTER (WHERE i > 3) * 100.0 / COUNT(*), ROUND(AVG(n), 1) FROM t
    SELECT CASE WHEN COUNT(*) > 10.5 THEN 'many' ELSE 'few' END, COALESCE(SUM(i), 0) FROM t
    SELECT CASE COUNT(*) > 1000.5 WHEN TRUE THEN 'many' ELSE 'few' END FROM t
    SELECT ROUND(SUM(n) / COUNT(n), 2), FLOOR(AVG(i) + 0.123), CAST(AVG(n) AS INTEGER) FROM t
    SELECT SQRT(SUM(i * i)), LN(COUNT(*) + 1), POWER(COUNT(*), 0.5), ABS(SUM(i) - SUM(n)) FROM t
    SELECT GREATEST(COUNT(*), 0), LEAST(SUM(i), SUM(n)), NULLIF(COUNT(*) > 1000.5, FALSE) FROM t
    SELECT COUNT(*) IS DISTINCT FROM NULL, SUM(i) IS NOT NULL, AVG(n) BETWEEN -0.5 AND 200.5 FROM t
    SELECT 'n = ' || CASE WHEN COUNT(*) > 0.5 THEN 'some' END, UPPER('a'), DATE '2020-01-01' FROM t
    SELECT COUNT(*), COUNT(*) + COUNT(n), COUNT(*) FILTER (WHERE b) - COUNT(*) FILTER (WHERE NOT b) FROM t
    SELECT COUNT(*) FROM (SELECT * FROM t) AS q
    SELECT COUNT(*), SUM(i) FROM (SELECT * FROM t WHERE i > 3) AS q WHERE j < 4
    SELECT COUNT(*), SUM(y) FROM (SELECT i * 2 AS y, b FROM t) AS q WHERE b
    SELECT SUM(a), SUM(bb) FROM (SELECT i AS a, j AS bb FROM t) q
    SELECT SUM(q.a) FROM (SELECT t.i AS a FROM t) AS q WHERE q.a > 3
    SELECT SUM(j), SUM(i) FROM (SELECT i AS j, j AS i FROM t) AS swapped
    SELECT SUM(a), COUNT(z) FROM (SELECT i, n FROM t) AS q(a, z)
    SELECT SUM(a) FROM (SELECT i, n FROM t) AS q(a) WHERE n > 5
    SELECT AVG(z) FROM (SELECT CASE WHEN n > 50 THEN 50 ELSE n END AS z FROM t WHERE n IS NOT NULL) AS q
    SELECT SUM(y) FROM (SELECT y + 1 AS y FROM (SELECT i * 2 AS y FROM t WHERE b) AS a WHERE y > 0) AS z
    SELECT SUM(u) FROM (SELECT u FROM t WHERE u BETWEEN -10 AND 10) AS q
    SELECT SUM(u) FROM (SELECT LEAST(GREATEST(u, -10), 10) AS u, u IS NULL AS missing FROM t) AS q WHERE NOT missing
    SELECT COUNT(*), COUNT(k) FROM (SELECT NULL AS k, 1 AS one, 'x' AS word FROM t) AS q WHERE one = 1 AND word = 'x'
    SELECT COUNT(*) FROM (SELECT *, i + j AS y FROM t) AS q WHERE y > 5 AND nb
    SELECT COUNT(*) FROM (SELECT q.*, 1 AS more FROM (SELECT i, b FROM t) AS q) AS p WHERE i > more AND b
    SELECT COUNT(*) FILTER (WHERE y > 3) FROM (SELECT TRY_CAST(x AS DOUBLE) AS y FROM t) AS q
    SELECT SUM(m2) FROM (SELECT EXTRACT(month FROM d) AS m2 FROM t WHERE d > DATE '2020-02-01') AS q
    WITH q AS (SELECT * FROM t WHERE i > 3) SELECT COUNT(*), SUM(i) FROM q
    WITH q AS (SELECT i + j AS y FROM t), p AS (SELECT y * 2 AS y FROM q WHERE y > 0) SELECT SUM(y), COUNT(*) FROM p
    WITH q(a, z) AS (SELECT i, n FROM t) SELECT SUM(a), SUM(z) FROM q WHERE z > 5
    WITH t AS (SELECT i FROM t WHERE i > 5) SELECT COUNT(*) FROM t
    WITH q AS (SELECT i FROM t), unread AS (SELECT j FROM t) SELECT SUM(i) FROM q
    WITH Q AS (SELECT I AS Amount FROM T) SELECT SUM(aMOUNT) FROM q
    WITH q AS (WITH p AS (SELECT i FROM t WHERE b) SELECT i * 3 AS y FROM p) SELECT SUM(y) FROM q
    SELECT SUM(y) FROM (WITH p AS (SELECT i AS y FROM t) SELECT y FROM p WHERE y < 10) AS q
"""

# One row, DuckDB's text another.
WHOLE_RESPELT: list[tuple[str, str]] = [
    ("SELECT AVG(b) FILTER (WHERE i > 3), AVG(nb) FROM t",
     "SELECT AVG(b::INT) FILTER (WHERE i > 3), AVG(nb::INT) FROM t"),
    ("SELECT SUM(i) FILTER (WHERE FALSE), COUNT(i) FILTER (WHERE NULL) FROM t", "SELECT 0, 0"),
    ("SELECT COUNT_IF(i > 3), COUNT_IF(nb) FROM t WHERE FALSE", "SELECT 0, 0"),  # NULL in DuckDB
    ("SELECT COUNT_IF(NULL), COUNT_IF(i > NULL) FROM t", "SELECT 0, 0"),
    ("SELECT AVG(i) FILTER (WHERE FALSE), SUM(i) FILTER (WHERE i > 100) FROM t", "SELECT NULL, 0"),
    ("SELECT SUM(CASE WHEN FALSE THEN i END), COUNT(CASE WHEN i > 100 THEN 1 END) FROM t", "SELECT 0, 0"),
    ("SELECT SUM(CLAMP(CAST(TRIM(s) AS INTEGER), 0, 9)) FROM t", "SELECT 0"),
    ("SELECT COUNT(CAST(x AS DATE)), COUNT(CAST(x AS INTEGER)) FROM t",
     "SELECT COUNT(TRY_CAST(x AS DATE)), COUNT(TRY_CAST(x AS INTEGER)) FROM t"),
    ("SELECT COUNT(*) FROM t WHERE CAST(x AS DOUBLE) < 5", "SELECT COUNT(*) FROM t WHERE TRY_CAST(x AS DOUBLE) < 5"),
    ("SELECT COUNT(*) FROM t WHERE i / j > 1", "SELECT COUNT(*) FROM t WHERE i / NULLIF(j, 0) > 1"),
    ("SELECT COUNT(*) FROM t WHERE (1 // j) IS NULL", "SELECT COUNT(*) FROM t WHERE j = 0"),
    ("SELECT COUNT(SQRT(i)), COUNT(LN(i)), COUNT(LN(0)) FROM t",
     "SELECT COUNT(*) FILTER (WHERE i >= 0), COUNT(*) FILTER (WHERE i > 0), 0 FROM t"),
    ("SELECT COUNT(MAKE_DATE(2019, 2, j + 25)), COUNT(MAKE_DATE(2019, 13, 1)) FROM t",
     "SELECT COUNT(*) FILTER (WHERE j <= 3), 0 FROM t"),
    ("SELECT COUNT(*) FROM t WHERE d + i > DATE '2020-02-20'",
     "SELECT COUNT(*) FROM t WHERE d + CAST(i AS INTEGER) > DATE '2020-02-20'"),
    ("SELECT SUM(CLAMP(d - e, 0, 100)), COUNT(e - 1) FROM t",
     "SELECT SUM(LEAST(GREATEST(d - e, 0), 100)) FILTER (WHERE d - e IS NOT NULL), COUNT(e) FROM t"),
    ("SELECT SUM(i * 0.1) / 0, COUNT(*) % 0, SQRT(-COUNT(*) - 1), LN(SUM(i) - SUM(i)) FROM t",
     "SELECT NULL, NULL, NULL, NULL"),
    ("SELECT COUNT(*) FROM t WHERE s = 'c'", "SELECT COUNT(*) FROM t WHERE s = 'c'"),
    ("SELECT SUM(y) FROM (SELECT CLAMP(u, -2, 2) AS y FROM t) AS q",
     "SELECT SUM(LEAST(GREATEST(u, -2), 2)) FROM t WHERE u IS NOT NULL"),
    ("SELECT SUM(y) FROM (SELECT i / j AS y FROM t WHERE j > 0) AS q", "SELECT SUM(i / j) FROM t WHERE j > 0"),
    ("WITH q AS (SELECT i, CAST(x AS DOUBLE) AS y FROM t) SELECT COUNT(y), SUM(i) FILTER (WHERE y > 0) FROM q",
     "SELECT COUNT(TRY_CAST(x AS DOUBLE)), SUM(i) FILTER (WHERE TRY_CAST(x AS DOUBLE) > 0) FROM t"),
    ("SELECT COUNT(*) FROM t WHERE SUBSTR(x, NULL) IS NULL", "SELECT COUNT(*) FROM t"),
    ("SELECT SUM(b + 0) FROM (SELECT CAST(b AS INT) AS b FROM t) AS q", "SELECT SUM(b::INT) FROM t"),
]  # fmt: skip

# By group: how many columns are keys, how many groups are shown, and the texts.
GROUPED: list[tuple[int, int, str, str | None]] = [
    (1, 4, "SELECT FLOOR(i / 10) AS k, COUNT(*), SUM(i) FROM t GROUP BY k", None),
    (1, 4, "SELECT FLOOR(i / 10), COUNT(*) FROM t GROUP BY 1", None),
    (1, 4, "SELECT FLOOR(i / 10) * 10 AS decade, COUNT(*), AVG(j) FROM t GROUP BY FLOOR(i / 10) * 10", None),
    (1, 4, "SELECT i // 10 AS k, COUNT(*) FROM t GROUP BY i // 10", None),
    (1, 11, "SELECT n // 10 AS k, COUNT(*) FROM t WHERE n IS NOT NULL GROUP BY k", None),
    (1, 5, "SELECT i % 3 AS k, COUNT(*), SUM(n) FROM t GROUP BY 1", None),
    (1, 13, "SELECT FLOOR(r) AS k, COUNT(*) FROM t WHERE r IS NOT NULL GROUP BY k", None),
    (1, 14, "SELECT ROUND(r) AS k, COUNT(*) FROM t WHERE r IS NOT NULL GROUP BY k", None),
    (1, 2, "SELECT i > 3 AS k, COUNT(*), SUM(i) FROM t GROUP BY k", None),
    (1, 3, "SELECT n > 7 AS k, COUNT(*), SUM(n) FROM t GROUP BY k",
     "SELECT n > 7 AS k, COUNT(*), COALESCE(SUM(n), 0) FROM t GROUP BY k"),
    (1, 2, "SELECT n IS NULL AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 2, "SELECT x LIKE 'a%' AS k, COUNT(*) FROM t WHERE x IS NOT NULL GROUP BY k", None),
    (1, 3, "SELECT x LIKE 'a%' AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 3, "SELECT b AND nb AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 3, "SELECT NOT nb AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 2, "SELECT nb IS DISTINCT FROM b AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 3, "SELECT d > e AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 2, "SELECT CASE WHEN i > 3 THEN 'big' ELSE 'small' END AS k, COUNT(*), SUM(i) FROM t GROUP BY k", None),
    (1, 3, "SELECT CASE WHEN n > 50 THEN 'high' WHEN n > 5 THEN 'mid' END AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 3, "SELECT CASE j WHEN 0 THEN 'none' WHEN 1 THEN 'one' ELSE 'many' END AS k, COUNT(*) FROM t GROUP BY k",
     None),
    (1, 3, "SELECT CASE WHEN x LIKE 'a%' THEN 1 WHEN u > 0 THEN 2 ELSE 3 END AS k, COUNT(*) FROM t GROUP BY k", None),
    (2, 4, "SELECT CASE WHEN u > 0 THEN nb ELSE NULL END IS TRUE AS k, b AS k2, COUNT(*) FROM t GROUP BY k, k2",
     None),
    (1, 2, "SELECT IF(u > 0, 'plus', 'other') AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 3, "SELECT SIGN(i) AS k, COUNT(*), SUM(i) FROM t GROUP BY k", None),
    (1, 21, "SELECT ABS(i) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 6, "SELECT j + 1 AS k, COUNT(*), SUM(j) FROM t GROUP BY k", None),
    (1, 6, "SELECT -j AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 6, "SELECT POWER(j, 2) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 6, "SELECT CAST(j AS VARCHAR) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 2, "SELECT CAST(b AS INTEGER) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 2, "SELECT CAST(b AS VARCHAR) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 3, "SELECT UPPER(CAST(nb AS VARCHAR)) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 102, "SELECT COALESCE(n, -1) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 4, "SELECT LEAST(j, 3) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 4, "SELECT GREATEST(j, 2) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 6, "SELECT NULLIF(j, 3) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 2, "SELECT COALESCE(nb, FALSE) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 4, "SELECT EXTRACT(month FROM d) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 3, "SELECT MONTH(d) AS k, COUNT(*) FROM t WHERE d IS NOT NULL GROUP BY k", None),
    (1, 8, "SELECT EXTRACT(dow FROM d) AS k, COUNT(*), SUM(i) FROM t GROUP BY k", None),
    (1, 8, "SELECT DAYNAME(d) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 4, "SELECT MONTHNAME(d) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 4, "SELECT DATE_TRUNC('month', d) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 8, "SELECT DATE_TRUNC('week', d) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 42, "SELECT d, COUNT(*), SUM(i) FROM t GROUP BY d", None),
    (1, 41, "SELECT d, COUNT(*) FROM t WHERE d IS NOT NULL GROUP BY d", None),
    (1, 10, "SELECT d, COUNT(*) FROM t WHERE d BETWEEN DATE '2020-02-01' AND DATE '2020-02-10' GROUP BY d", None),
    (1, 61, "SELECT CAST(w AS DATE) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 3, "SELECT EXTRACT(month FROM w) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 25, "SELECT HOUR(w) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 25, "SELECT EXTRACT(hour FROM v) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 13, "SELECT EXTRACT(month FROM e) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 2, "SELECT YEAR(d) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 4, "SELECT LAST_DAY(d) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 42, "SELECT DATE_DIFF('day', DATE '2020-01-25', d) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 42, "SELECT d + 7 AS k, COUNT(*) FROM t GROUP BY k", None),
    (3, 8, "SELECT b, i > 3 AS k, n > 7 IS TRUE AS k2, COUNT(*) FROM t GROUP BY b, k, k2", None),
    (2, 12, "SELECT b, j, COUNT(*), SUM(n) FROM t GROUP BY b, j", None),
    (2, 8, "SELECT FLOOR(i / 10) AS k, b, COUNT(*) FROM t GROUP BY k, b", None),
    (2, 12, "SELECT EXTRACT(month FROM d) AS k, nb, COUNT(*) FROM t GROUP BY 1, 2", None),
    (2, 6, "SELECT CASE WHEN i > 3 THEN 'big' ELSE 'small' END, nb, COUNT(*) FROM t GROUP BY 1, nb", None),
    (3, 36, "SELECT b, nb, j, COUNT(*), SUM(r) FROM t GROUP BY 1, 2, 3",
     "SELECT b, nb, j, COUNT(*), COALESCE(SUM(r), 0) FROM t GROUP BY 1, 2, 3"),
    (1, 6, "SELECT j, COUNT(*), COUNT(*) FILTER (WHERE b) FROM t GROUP BY j", None),
    (1, 6, "SELECT j, COUNT(*), COUNT_IF(nb), COUNT_IF(n IS NULL) FROM t GROUP BY j", None),
    (1, 6, ("SELECT j, COUNT(*), ROUND(AVG(i), 1), CASE WHEN COUNT(*) > 8.5 THEN 'many' ELSE 'few' END"
      " FROM t GROUP BY j"),
     None),
    (1, 6, "SELECT j, COUNT(*), SUM(CASE WHEN b THEN i ELSE -i END) FROM t GROUP BY j", None),
    (1, 6, "SELECT j, COUNT(*), UPPER(CASE WHEN j > 2 THEN 'x' ELSE 'y' END), j * 2 FROM t GROUP BY j", None),
    (1, 6, "SELECT k, COUNT(*), SUM(y) FROM (SELECT j AS k, i * 2 AS y FROM t) AS q GROUP BY k", None),
    (1, 4, "SELECT k, COUNT(*) FROM (SELECT FLOOR(i / 10) AS k FROM t WHERE b) AS q GROUP BY k", None),
    (1, 2, "WITH q AS (SELECT i > j AS k, * FROM t) SELECT k, COUNT(*), SUM(n) FROM q GROUP BY k", None),
    (1, 31, "SELECT j, COUNT(*) FROM (SELECT i AS j FROM t) AS q GROUP BY j", None),
    (1, 4, "SELECT i, COUNT(*) FROM t WHERE i BETWEEN 1 AND 4 GROUP BY i", None),
    (1, 3, "SELECT j, COUNT(*) FROM t WHERE j > 2 GROUP BY j", None),
    (1, 2, "SELECT j, COUNT(*) FROM t WHERE j IN (1, 2) GROUP BY j", None),
    (1, 4, "SELECT s, COUNT(*), SUM(i) FROM t GROUP BY s",
     f"SELECT {LISTED_S} AS k, COUNT(*), SUM(i) FROM t GROUP BY k"),
    (1, 4, "SELECT S, COUNT(*) FROM t WHERE i > 0 GROUP BY s",
     f"SELECT {LISTED_S} AS k, COUNT(*) FROM t WHERE i > 0 GROUP BY k"),
    (1, 3, "SELECT c, COUNT(*) FROM t GROUP BY c", f"SELECT c, COUNT(*) FROM t WHERE {LISTED_C} GROUP BY c"),
    (1, 4, "SELECT UPPER(s) AS k, COUNT(*) FROM t GROUP BY k",
     "SELECT UPPER(s) AS k, COUNT(*) FROM t WHERE s IS DISTINCT FROM 'c' GROUP BY k"),
    (1, 3, "SELECT UPPER(c) AS k, COUNT(*) FROM t GROUP BY k",
     f"SELECT UPPER(c) AS k, COUNT(*) FROM t WHERE {LISTED_C} GROUP BY k"),
    (1, 3, "SELECT LENGTH(s) AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 3, "SELECT s = 'a' AS k, COUNT(*) FROM t GROUP BY k", None),
    (1, 4, "SELECT COALESCE(s, 'none') AS k, COUNT(*) FROM t GROUP BY k",
     "SELECT COALESCE(s, 'none') AS k, COUNT(*) FROM t WHERE s IS DISTINCT FROM 'c' GROUP BY k"),
    (1, 4, "SELECT COALESCE(c, 'none') AS k, COUNT(*) FROM t GROUP BY k",
     "SELECT COALESCE(c, 'none') AS k, COUNT(*) FROM t WHERE c IS DISTINCT FROM 'green' GROUP BY k"),
    (1, 4, "SELECT s || '!' AS k, COUNT(*) FROM t GROUP BY k",
     "SELECT s || '!' AS k, COUNT(*) FROM t WHERE s IS DISTINCT FROM 'c' GROUP BY k"),
    (1, 3, "SELECT SUBSTRING(c, 1, 1) AS k, COUNT(*) FROM t GROUP BY k",
     f"SELECT SUBSTRING(c, 1, 1) AS k, COUNT(*) FROM t WHERE {LISTED_C} GROUP BY k"),
    (2, 12, "SELECT s, c, COUNT(*) FROM t GROUP BY s, c",
     f"SELECT {LISTED_S} AS k, c, COUNT(*) FROM t WHERE {LISTED_C} GROUP BY k, c"),
    (2, 8, "SELECT s, b, COUNT(*), SUM(n) FROM t GROUP BY s, b",
     f"SELECT {LISTED_S} AS k, b, COUNT(*), SUM(n) FROM t GROUP BY k, b"),
    (1, 4, "SELECT k, COUNT(*) FROM (SELECT s AS k FROM t) AS q GROUP BY k",
     f"SELECT {LISTED_S} AS k, COUNT(*) FROM t GROUP BY k"),
    (1, 3, "SELECT c AS s, COUNT(*) FROM t GROUP BY t.c", f"SELECT c, COUNT(*) FROM t WHERE {LISTED_C} GROUP BY c"),
    (1, 6, "SELECT i // j AS k, COUNT(*) FROM t WHERE i BETWEEN 0 AND 4 AND j BETWEEN 0 AND 5 GROUP BY k",
     "SELECT i // NULLIF(j, 0) AS k, COUNT(*) FROM t WHERE i BETWEEN 0 AND 4 GROUP BY k"),
    (1, 3, "SELECT CLAMP(j, 1, 3) AS k, COUNT(*) FROM t WHERE j <> 77 OR j IS NULL GROUP BY k",
     "SELECT LEAST(GREATEST(j, 1), 3) AS k, COUNT(*) FROM t GROUP BY k"),
]  # fmt: skip

# In order: what is done with an answer. Nothing that noise could decide.
ORDERED: list[tuple[str, str | None]] = [
    ("SELECT DISTINCT j FROM t ORDER BY j", None),
    ("SELECT DISTINCT b, nb FROM t ORDER BY b, nb", None),
    ("SELECT DISTINCT j + 1 AS k FROM t ORDER BY k DESC", None),
    ("SELECT DISTINCT i > 3 FROM t ORDER BY 1", None),
    ("SELECT DISTINCT b FROM t WHERE i > 3 ORDER BY b", None),
    ("SELECT DISTINCT EXTRACT(month FROM d) AS k FROM t ORDER BY k NULLS FIRST", None),
    ("SELECT DISTINCT CASE WHEN i > 3 THEN 'big' ELSE 'small' END AS k FROM t ORDER BY k", None),
    ("SELECT DISTINCT COUNT(*) > 0.5 FROM t GROUP BY j", None),
    ("SELECT DISTINCT j > 2 AS k FROM t GROUP BY j ORDER BY k", None),
    ("SELECT j FROM t GROUP BY j ORDER BY j", None),
    ("SELECT j, COUNT(*) FROM t GROUP BY j ORDER BY j % 2, j DESC", None),
    ("SELECT j, SUM(i) FROM t GROUP BY j HAVING COUNT(*) > 0.5 ORDER BY j LIMIT 2 OFFSET 1", None),
    ("SELECT j, SUM(i) FROM t GROUP BY j HAVING SUM(i) > -1000.5 AND j IN (1, 3, 5) ORDER BY 1 DESC", None),
    ("SELECT j, SUM(i) AS y FROM t GROUP BY j HAVING y / COUNT(*) > -20.5 ORDER BY j", None),
    ("SELECT j FROM t GROUP BY j HAVING j BETWEEN 1 AND 4 AND NOT j = 2 ORDER BY j", None),
    ("SELECT j FROM t GROUP BY j HAVING CASE WHEN j > 2 THEN COUNT(*) > 0.5 ELSE FALSE END ORDER BY j", None),
    ("SELECT j, COUNT(*) FROM t GROUP BY j HAVING COUNT(*) FILTER (WHERE b) > 0.5 ORDER BY j", None),
    ("SELECT j FROM t GROUP BY j ORDER BY SUM(i) + SUM(n)", None),
    ("SELECT j FROM t GROUP BY j ORDER BY CASE j WHEN 3 THEN 0 ELSE 1 END, j", None),
    ("SELECT j, AVG(n) AS a FROM t GROUP BY j ORDER BY ROUND(a, 3) DESC", None),
    ("SELECT nb, COUNT(*) FROM t GROUP BY nb ORDER BY COALESCE(nb, FALSE), nb NULLS FIRST", None),
    ("SELECT d, COUNT(*) FROM t GROUP BY d HAVING COUNT(*) > 0.5 ORDER BY d DESC NULLS LAST LIMIT 7", None),
    ("SELECT EXTRACT(dow FROM d) AS k, COUNT(*) FROM t GROUP BY k HAVING COUNT(*) > 0.5 ORDER BY k", None),
    ("SELECT j, b, COUNT(*) FROM t GROUP BY j, b HAVING COUNT(*) > 0.5 ORDER BY b DESC, j LIMIT 5", None),
    ("SELECT e, COUNT(*) FROM t GROUP BY e ORDER BY e", None),
    ("SELECT v, COUNT(*) FROM t GROUP BY v ORDER BY v DESC NULLS FIRST", None),
    ("SELECT YEAR(e) AS y, COUNT(*) FROM t GROUP BY y ORDER BY y NULLS FIRST", None),
    ("SELECT LOWER(o) AS k, COUNT(*) FROM t GROUP BY k ORDER BY k", None),
    ("SELECT UPPER(TRIM(o)) AS k, nb, COUNT(*) FROM t GROUP BY k, nb HAVING COUNT(*) > 1.5 ORDER BY 1, 2", None),
    ("SELECT x, COUNT(*) AS y FROM t GROUP BY x HAVING y > 1.5 ORDER BY x NULLS FIRST", None),
    ("SELECT * FROM (SELECT j, COUNT(*) AS y FROM t GROUP BY j) AS q ORDER BY j", None),
    ("SELECT y, j FROM (SELECT j, COUNT(*) AS y FROM t GROUP BY j) AS q WHERE j > 1 ORDER BY j DESC", None),
    ("SELECT q.j, q.y + 1 FROM (SELECT j, COUNT(*) AS y FROM t GROUP BY j) AS q ORDER BY q.j", None),
    ("SELECT j AS k, y * 2 AS z FROM (SELECT j, SUM(i) AS y FROM t GROUP BY j) AS q ORDER BY k LIMIT 3 OFFSET 2",
     None),
    ("SELECT SUM(y), COUNT(*), MIN(j), MAX(j) FROM (SELECT j, COUNT(*) AS y FROM t GROUP BY j) AS q", None),
    ("SELECT AVG(y), MAX(y), MIN(y) FROM (SELECT j, COUNT(*) AS y FROM t GROUP BY j) AS q", None),
    ("SELECT SUM(y), COUNT(y), COUNT(nb) FROM (SELECT nb, COUNT(*) AS y FROM t GROUP BY nb) AS q", None),
    ("SELECT j % 2 AS k, SUM(y) FROM (SELECT j, COUNT(*) AS y FROM t GROUP BY j) AS q GROUP BY k ORDER BY k", None),
    ("SELECT j > 2 AS k, MAX(y) - MIN(y) FROM (SELECT j, COUNT(*) AS y FROM t GROUP BY j) AS q GROUP BY 1 ORDER BY 1",
     None),
    ("SELECT b, SUM(y) AS z FROM (SELECT b, j, COUNT(*) AS y FROM t GROUP BY b, j) AS q GROUP BY b ORDER BY b", None),
    ("SELECT b, COUNT(*), SUM(y) FROM (SELECT b, nb, COUNT(*) AS y FROM t GROUP BY b, nb) AS q GROUP BY b ORDER BY b",
     None),
    (("SELECT nb, SUM(y)"
      " FROM (SELECT b, nb, COUNT(*) AS y FROM t GROUP BY b, nb) AS q GROUP BY nb HAVING SUM(y) > 3 ORDER BY nb"),
     None),
    (("SELECT nb, SUM(y) FILTER (WHERE b)"
      " FROM (SELECT b, nb, COUNT(*) AS y FROM t GROUP BY b, nb) AS q GROUP BY nb ORDER BY nb"),
     None),
    ("SELECT COUNT_IF(y > 8.5), COUNT(*) FILTER (WHERE y < 8.5) FROM (SELECT j, COUNT(*) AS y FROM t GROUP BY j) AS q",
     None),
    ("SELECT COUNT(*) FROM (SELECT j FROM t GROUP BY j HAVING j > 2) AS q", None),
    ("SELECT COUNT(*), SUM(j) FROM (SELECT DISTINCT j FROM t) AS q", None),
    ("SELECT DISTINCT j > 2 AS k FROM (SELECT j FROM t GROUP BY j) AS q ORDER BY k", None),
    ("SELECT DISTINCT b FROM (SELECT b, nb, COUNT(*) AS y FROM t GROUP BY b, nb) AS q ORDER BY b DESC", None),
    ("SELECT j FROM (SELECT j, COUNT(*) AS y FROM t GROUP BY j ORDER BY j DESC LIMIT 3) AS q ORDER BY j", None),
    ("SELECT MAX(j) FROM (SELECT j FROM t GROUP BY j ORDER BY j LIMIT 4) AS q", None),
    ("SELECT 100 * y / total FROM (SELECT COUNT(*) AS total, COUNT(n) AS y FROM t) AS q", None),
    ("SELECT ROUND(a, 2), a > 1.5 FROM (SELECT AVG(i) AS a FROM t) AS q", None),
    ("SELECT z + 1 FROM (SELECT y * 2 AS z FROM (SELECT COUNT(*) AS y FROM t) AS a) AS q", None),
    (("SELECT SUM(z) FROM (SELECT b, SUM(y) AS z"
      " FROM (SELECT b, j, COUNT(*) AS y FROM t GROUP BY b, j) AS a GROUP BY b) AS q"),
     None),
    (("SELECT MAX(z), MIN(z) FROM (SELECT b, MAX(y) AS z"
      " FROM (SELECT b, j, COUNT(*) AS y FROM t GROUP BY b, j) AS a GROUP BY b) AS q"), None),
    ("WITH q AS (SELECT j, COUNT(*) AS y FROM t GROUP BY j) SELECT SUM(y), MAX(j) FROM q", None),
    ("WITH q AS (SELECT i, j FROM t WHERE b), p AS (SELECT j, COUNT(*) AS y FROM q GROUP BY j) SELECT SUM(y) FROM p",
     None),
    (("WITH q AS (SELECT j, COUNT(*) AS y FROM t GROUP BY j), p AS (SELECT * FROM q WHERE j < 3)"
      " SELECT j, y FROM p ORDER BY j"),
     None),
    ("WITH q(k, y) AS (SELECT j, SUM(i) FROM t GROUP BY j) SELECT k, y FROM q ORDER BY k DESC", None),
    ("SELECT k, y FROM (SELECT j, SUM(i) FROM t GROUP BY j) AS q(k, y) WHERE k <> 3 ORDER BY k", None),
    (("SELECT CASE WHEN y > 8.5 THEN 'many' ELSE 'few' END AS z, COUNT(*)"
      " FROM (SELECT j, COUNT(*) AS y FROM t GROUP BY j) AS q GROUP BY z ORDER BY z"), None),
    (("SELECT UPPER(k), y"
      " FROM (SELECT CASE WHEN b THEN 'yes' ELSE 'no' END AS k, COUNT(*) AS y FROM t GROUP BY k) AS q ORDER BY 1"),
     None),
    ("SELECT MIN(d), MAX(d), COUNT(d) FROM (SELECT d, COUNT(*) AS y FROM t GROUP BY d HAVING COUNT(*) > 0.5) AS q",
     None),
    (("SELECT EXTRACT(month FROM d) AS k, SUM(y)"
      " FROM (SELECT d, COUNT(*) AS y FROM t GROUP BY d) AS q GROUP BY k HAVING k IS NOT NULL ORDER BY k"), None),
    (("SELECT d + INTERVAL 1 DAY, y"
      " FROM (SELECT d, COUNT(*) AS y FROM t GROUP BY d HAVING COUNT(*) > 1.5) AS q ORDER BY d"), None),
    (("SELECT k, y"
      " FROM (SELECT o AS k, COUNT(*) AS y FROM t GROUP BY o) AS q WHERE k LIKE '%''%' OR k IS NULL ORDER BY k"), None),
    ("SELECT MIN(k), MAX(k), COUNT(k) FROM (SELECT o AS k, COUNT(*) AS y FROM t GROUP BY o) AS q", None),
    ("SELECT MIN(b), MAX(b), MAX(nb) FROM (SELECT b, nb, COUNT(*) FROM t GROUP BY b, nb) AS q", None),
    ("SELECT y FROM (SELECT COUNT(*) AS y FROM t) AS q WHERE y > 1000.5", None),
    ("SELECT COUNT(*), SUM(y), MAX(y) FROM (SELECT COUNT(*) AS y FROM t) AS q WHERE y > 1000.5", None),
    ("SELECT j, COUNT(*) AS y FROM (SELECT j FROM t WHERE b) AS q GROUP BY j HAVING COUNT(*) > 0.5 ORDER BY y DESC, j",
     None),
    ("SELECT s FROM t GROUP BY s ORDER BY s",
     "SELECT k FROM (VALUES ('a'), ('b'), ('zz'), (NULL)) AS l(k) ORDER BY k"),
    ("SELECT DISTINCT c FROM t ORDER BY c",
     "SELECT k FROM (VALUES ('red'), ('blue'), ('none of these')) AS l(k) ORDER BY k"),
    ("SELECT COUNT(*), SUM(y) FROM (SELECT c, COUNT(*) AS y FROM t GROUP BY c) AS q",
     f"SELECT 3, COUNT(*) FROM t WHERE {LISTED_C}"),
    ("SELECT n, y / 0 FROM (SELECT b AS n, COUNT(*) AS y FROM t GROUP BY b) AS q ORDER BY n",
     "SELECT b, NULL FROM t GROUP BY b ORDER BY b"),
]  # fmt: skip

# Parameters; DuckDB's text has the literals.
PARAMETERS: list[tuple[str, dict[str, Any], str]] = [
    ("SELECT COUNT(*) FROM t WHERE i > :low", {"low": 3}, "SELECT COUNT(*) FROM t WHERE i > 3"),
    ("SELECT SUM(u) FROM t WHERE u BETWEEN :low AND :high", {"low": -10, "high": 10.5},
     "SELECT SUM(u) FROM t WHERE u BETWEEN -10 AND 10.5"),
    ("SELECT COUNT(*) FROM t WHERE x = :word", {"word": "abc"}, "SELECT COUNT(*) FROM t WHERE x = 'abc'"),
    ("SELECT COUNT(*) FROM t WHERE o = :word", {"word": "it's"}, "SELECT COUNT(*) FROM t WHERE o = 'it''s'"),
    ("SELECT COUNT(*) FROM t WHERE o = :word", {"word": "' OR 1 = 1 --"}, "SELECT 0"),
    ("SELECT COUNT(*) FROM t WHERE x LIKE :form", {"form": "a%"}, "SELECT COUNT(*) FROM t WHERE x LIKE 'a%'"),
    ("SELECT COUNT(*) FROM t WHERE b = :yes", {"yes": True}, "SELECT COUNT(*) FROM t WHERE b"),
    ("SELECT COUNT(*) FROM t WHERE :yes", {"yes": False}, "SELECT 0"),
    ("SELECT COUNT(*) FROM t WHERE n IS DISTINCT FROM :none", {"none": None}, "SELECT COUNT(n) FROM t"),
    ("SELECT COUNT(*) FROM t WHERE n = :none", {"none": None}, "SELECT 0"),
    ("SELECT COUNT(*) FROM t WHERE d >= :day",
     {"day": date(2020, 2, 10)}, "SELECT COUNT(*) FROM t WHERE d >= DATE '2020-02-10'"),
    ("SELECT COUNT(*) FROM t WHERE d >= :day",
     {"day": "2020-02-10"}, "SELECT COUNT(*) FROM t WHERE d >= DATE '2020-02-10'"),
    ("SELECT COUNT(*) FROM t WHERE w < :at", {"at": datetime(2020, 1, 20, 12)},
     "SELECT COUNT(*) FROM t WHERE w < TIMESTAMP '2020-01-20 12:00:00'"),
    ("SELECT SUM(CLAMP(u, -:most, :most)) FROM t", {"most": 5},
     "SELECT SUM(LEAST(GREATEST(u, -5), 5)) FROM t WHERE u IS NOT NULL"),
    ("SELECT COUNT(*) FROM t WHERE i IN (:a, :b, :a)", {"a": 1, "b": 2}, "SELECT COUNT(*) FROM t WHERE i IN (1, 2)"),
    ("SELECT SUM(CASE WHEN i > :k THEN 1 ELSE :other END) FROM t", {"k": 3, "other": -1},
     "SELECT SUM(CASE WHEN i > 3 THEN 1 ELSE -1 END) FROM t"),
    ("SELECT SUM(i * :k) FROM t", {"k": 0.5}, "SELECT SUM(i * 0.5) FROM t"),
    ("SELECT COUNT(*) * :k, :word FROM t", {"k": 2, "word": "x"}, "SELECT COUNT(*) * 2, 'x' FROM t"),
    ("SELECT COUNT(*) FROM (SELECT i + :k AS y FROM t) AS q WHERE y > :k",
     {"k": 4}, "SELECT COUNT(*) FROM t WHERE i > 0"),
    ("SELECT COUNT(*) FROM t WHERE d + INTERVAL (:k) DAY > :day", {"k": 3, "day": date(2020, 2, 20)},
     "SELECT COUNT(*) FROM t WHERE d > DATE '2020-02-17'"),
    ("SELECT j, COUNT(*) FROM t GROUP BY j HAVING j >= :k ORDER BY j LIMIT :most", {"k": 1, "most": 3},
     "SELECT j, COUNT(*) FROM t GROUP BY j HAVING j >= 1 ORDER BY j LIMIT 3"),
    ("SELECT COUNT(*) FILTER (WHERE n > :k), COUNT_IF(r < :k) FROM t", {"k": 2},
     "SELECT COUNT(*) FILTER (WHERE n > 2), COUNT_IF(r < 2) FROM t"),
]  # fmt: skip


def whole() -> list[tuple[str, str | None]]:
    """All texts of one row, with DuckDB's."""
    return [*((line.strip(), None) for line in WHOLE.strip().splitlines()), *WHOLE_RESPELT]

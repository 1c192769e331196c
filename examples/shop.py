"""A shop whose customers are protected, with all their orders and items: ten questions over several tables.

python examples/shop.py
"""

from __future__ import annotations

import runpy
import shutil
import tempfile
from pathlib import Path

import dpsql

FOLDER = Path(__file__).resolve().parent / "shop"

REVENUE = """
SELECT name AS country, SUM(i_quantity * p_price) AS revenue
FROM items
    JOIN orders ON o_orderkey = i_orderkey
    JOIN customer ON c_custkey = o_custkey
    JOIN country ON code = c_country
    JOIN product ON p_product = i_product
WHERE NOT i_returned
GROUP BY name
ORDER BY revenue DESC
"""

QUESTIONS = {
    "How many orders were there in 2025, and of how many customers?": """
SELECT COUNT(*) AS orders, COUNT(DISTINCT o_custkey) AS customers
FROM orders
WHERE o_day >= '2025-01-01'
""",
    "How many orders has a customer? The inner query makes one row of each; the outer one bounds it.": """
SELECT AVG(CLAMP(n, 0, 40)) AS orders_per_customer
FROM (
    SELECT c_custkey, COUNT(o_orderkey) AS n
    FROM customer LEFT JOIN orders ON o_custkey = c_custkey
    GROUP BY c_custkey
) AS per_customer
""",
    "What is earned in each country? Items lead to customers; countries are public, so all are shown.": REVENUE,
    "Where do the customers live? Nobody has listed the towns, so small ones are hidden, which takes a delta.": """
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (delta = 5e-7) c_city, COUNT(*) AS customers
FROM customer
GROUP BY c_city
ORDER BY customers DESC
LIMIT 8
""",
    "Which customers have ever had a large order?": """
SELECT region, COUNT(*) AS customers
FROM customer JOIN country ON code = c_country
WHERE EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey AND o_amount > 300)
GROUP BY region
""",
    "How old are those who order often?": """
SELECT AVG(c_age) AS age, COUNT(*) AS customers
FROM customer
WHERE c_custkey IN (SELECT o_custkey FROM orders GROUP BY o_custkey HAVING COUNT(*) >= 10)
""",
    "How many have never ordered on the web?": """
SELECT COUNT(*) AS customers
FROM customer
WHERE c_custkey NOT IN (SELECT o_custkey FROM orders)
""",
    "What share of the items comes back?": """
SELECT p_category, ROUND(100 * AVG(i_returned), 1) AS percent_returned
FROM items JOIN product ON p_product = i_product
GROUP BY p_category
""",
    "How much is sold, on the web and in the stores together?": """
SELECT EXTRACT(year FROM day) AS year, COUNT(*) AS orders, SUM(amount) AS revenue
FROM (
    SELECT o_day AS day, o_amount AS amount FROM orders
    UNION ALL
    SELECT s_day, s_amount FROM store_orders
) AS both_ways
GROUP BY year
""",
}

LIMITED = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = {rows}) SUM(o_amount) AS revenue FROM orders"
)


def main() -> None:
    """The shop's questions, and what the intervals do not say."""
    tables = runpy.run_path(str(FOLDER / "make.py"))["tables"]()
    with tempfile.TemporaryDirectory() as folder:  # its ledger lies beside the schema: a copy's goes with the copy
        schema = dpsql.Schema.from_toml(shutil.copy(FOLDER / "shop.toml", folder))
        with dpsql.Session(tables, schema=schema) as session:
            ask_all(session)
    print(f"\nThe intervals are of the noise alone. The exact revenue is {tables['orders']['o_amount'].sum():,.0f}.")


def ask_all(session: dpsql.Session) -> None:
    """An explanation, nine questions, and one question with three limits, each printed."""
    print("Before anything is spent: what would a query do?\n")
    print(session.query(f"EXPLAIN PRIVACY {REVENUE.strip()}", epsilon=1))

    for number, (title, sql) in enumerate(QUESTIONS.items(), start=1):
        print(f"\n{number}. {title}\n{sql}")
        print(session.query(sql, epsilon=1))

    print("\n10. What a limit on a customer's rows does: a low one leaves orders out, a high one needs more noise.\n")
    for rows in (2, 10, 40):
        print(f"at most {rows} orders of a customer:")
        print(session.query(LIMITED.format(rows=rows), epsilon=0.3))


if __name__ == "__main__":
    main()

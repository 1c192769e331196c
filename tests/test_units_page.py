"""docs/units.md, the owner's page on privacy units, says what the code does."""

from __future__ import annotations

import numpy as np
import pandas as pd


def shop(customers: int = 200) -> dict[str, pd.DataFrame]:
    """The tables of the shop that the manuals are about: customers, orders and items; products, labels and countries.

    Nobody has more than 20 orders or 60 items; product 20 has no label, and nobody lives in Sweden."""
    draw = np.random.default_rng(3)
    orders, items = 4 * customers, 8 * customers

    def text(words: list[str], size: int) -> pd.Series:
        return pd.Series(draw.choice(words, size), dtype="str")

    return {
        "customers": pd.DataFrame(
            {
                "id": np.arange(customers) + 1000,
                "country": text(["DE", "FR", "NO"], customers),
                "city": text(["Bremen", "Lyon", "Oslo"], customers),
                "age": draw.integers(17, 91, customers),
            }
        ),
        "orders": pd.DataFrame(
            {
                "id": np.arange(orders) * 3,
                "customer": draw.integers(1000, 1000 + customers, orders),
                "state": text(["open", "paid", "sent"], orders),
                "total": draw.integers(0, 2001, orders) / 4,
                "placed": pd.Timestamp("2024-01-01") + pd.to_timedelta(draw.integers(0, 365, orders), unit="D"),
            }
        ),
        "items": pd.DataFrame(
            {
                "order_id": draw.integers(0, orders, items) * 3,
                "product": draw.integers(1, 21, items),
                "quantity": draw.integers(1, 10, items),
            }
        ),
        "products": pd.DataFrame(
            {
                "id": range(1, 21),
                "kind": pd.Series(["book", "toy", "food", "tool"] * 5, dtype="str"),
                "price": draw.integers(4, 200, 20) / 4,
            }
        ),
        "labels": pd.DataFrame({"product": [*range(1, 20), *range(1, 10)], "label": text(["new", "sale"], 28)}),
        "countries": pd.DataFrame(
            {
                "code": pd.Series(["DE", "FR", "NO", "SE"], dtype="str"),
                "name": pd.Series(["Germany", "France", "Norway", "Sweden"], dtype="str"),
                "nordic": [False, False, True, True],
            }
        ),
    }

"""The made-up shop: six tables as DataFrames, the same in every run.

python examples/shop/make.py FOLDER    # writes them as CSV files, for the command line
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

SEED = 2024
CUSTOMERS = 3_000
DAYS = pd.date_range("2024-01-01", "2025-12-31")

COUNTRIES = {
    "AT": ("Austria", "Alps"),
    "BE": ("Belgium", "Coast"),
    "CH": ("Switzerland", "Alps"),
    "DE": ("Germany", "Centre"),
    "DK": ("Denmark", "North"),
    "FR": ("France", "Centre"),
    "LU": ("Luxembourg", "Centre"),
    "NL": ("Netherlands", "Coast"),
    "NO": ("Norway", "North"),
    "SE": ("Sweden", "North"),
}
SHARES = [0.06, 0.09, 0.07, 0.31, 0.05, 0.22, 0.01, 0.12, 0.03, 0.04]
TREES = ["Alder", "Ash", "Beech", "Birch", "Cedar", "Elm", "Hazel", "Larch", "Linden", "Maple", "Oak", "Pine", "Rowan"]
ENDINGS = ["bridge", "brook", "burgh", "dale", "field", "ford", "ham", "haven", "mere", "stead", "ton", "wick", "wood"]
CATEGORIES = ["books", "garden", "kitchen", "music", "sports", "toys"]


def tables() -> dict[str, pd.DataFrame]:
    """customer, orders (from the web) with items, and store_orders are people's; country and product are public."""
    draw = np.random.default_rng(SEED)
    country = pd.DataFrame(
        [(code, name, region) for code, (name, region) in COUNTRIES.items()], columns=["code", "name", "region"]
    )
    products = np.arange(1, 49)
    product = pd.DataFrame(
        {
            "p_product": products,
            "p_category": np.array(CATEGORIES)[products % len(CATEGORIES)],
            "p_price": np.round(2 + 58 * draw.beta(1.2, 3, len(products)), 2),
        }
    )

    towns = np.array([tree + ending for tree in TREES for ending in ENDINGS])
    weights = 1 / np.arange(1, len(towns) + 1)  # a few large towns and many small ones
    customer = pd.DataFrame(
        {
            "c_custkey": np.arange(1, CUSTOMERS + 1),
            "c_country": draw.choice(list(COUNTRIES), CUSTOMERS, p=SHARES),
            "c_city": draw.choice(draw.permutation(towns), CUSTOMERS, p=weights / weights.sum()),
            "c_age": np.clip(draw.normal(44, 15, CUSTOMERS).round(), 18, 95).astype(np.int64),
        }
    )

    # Most customers order now and then, some every other week, a few not at all.
    times = np.clip(draw.lognormal(1.2, 1.0, CUSTOMERS).astype(np.int64) - 1, 0, 40)
    count = int(times.sum())
    orders = pd.DataFrame(
        {
            "o_orderkey": np.arange(1, count + 1),
            "o_custkey": np.repeat(customer["c_custkey"].to_numpy(), times),
            "o_day": draw.choice(DAYS, count),
        }
    )

    size = draw.integers(1, 8, count)
    items = pd.DataFrame(
        {
            "i_orderkey": np.repeat(orders["o_orderkey"].to_numpy(), size),
            "i_product": draw.choice(products, size.sum()),
            "i_quantity": draw.integers(1, 4, size.sum()),
            "i_returned": draw.random(size.sum()) < 0.06,
        }
    )
    prices = product.set_index("p_product")["p_price"]
    paid = items["i_quantity"] * items["i_product"].map(prices)
    orders["o_amount"] = paid.groupby(items["i_orderkey"]).sum().round(2).to_numpy()

    visits = draw.poisson(1.5, CUSTOMERS)
    store_orders = pd.DataFrame(
        {
            "s_custkey": np.repeat(customer["c_custkey"].to_numpy(), visits),
            "s_day": draw.choice(DAYS, visits.sum()),
            "s_amount": np.clip(draw.gamma(2, 35, visits.sum()), 1, 1_000).round(2),
        }
    )
    return {
        "customer": customer,
        "orders": orders,
        "items": items,
        "store_orders": store_orders,
        "country": country,
        "product": product,
    }


def main() -> None:
    """Write a CSV file for each table."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in tables().items():
        frame.to_csv(folder / f"{name}.csv", index=False)


if __name__ == "__main__":
    main()

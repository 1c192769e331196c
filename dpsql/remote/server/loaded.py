"""What a worker needs for its first question: importing this loads it (`nursery`)."""

from __future__ import annotations

import pandas as pd

from dpsql.core.ledger.budget import Budget
from dpsql.remote.server import encoding
from dpsql.session.session import Session
from dpsql.session.table import Table


def _warm_up() -> None:
    """Load what a first question loads, before anybody waits for it."""
    frame = pd.DataFrame({"g": ["a", "b"], "x": [1.0, 2.0]})
    with Session({"t": Table(frame, bounds={"x": (0, 1)}, keys={"g": ["a", "b"]})}, budget=Budget(1)) as session:
        sql = "SELECT g, COUNT(*) AS n, AVG(x) AS x FROM t GROUP BY g"
        encoding.explanation_in_json(session.explain(sql, epsilon=1))
        encoding.result_in_json(session.query(sql, epsilon=1))


_warm_up()

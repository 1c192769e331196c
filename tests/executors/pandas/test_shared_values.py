"""What several expressions of a plan have in common is computed once a block, and is what each comes to alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.evaluation import BLOCK, Evaluation, Evaluator, evaluator, evaluators
from dpsql.executors.pandas.relations import Relation, rows_alone
from dpsql.plan import evaluation as plans
from dpsql.plan.expressions import Expr, Vector
from dpsql.plan.nodes import Filter, Scan
from dpsql.schema.declaration import resolve
from dpsql.sources.frames import stored_columns
from tests.core.checks import U, calibrated
from tests.lies import assert_caught

ROWS = 2 * BLOCK + 1_000
CONDITIONS = (
    "p < 5 AND x IS NOT NULL",
    "NOT p < 5 AND x IS NOT NULL",
    "p < 5 OR UPPER(g) = 'A'",
    "UPPER(g) = 'A' AND LOWER(g) = 'c'",
    "UPPER(g) = 'A' AND p < 5",
)


def rows() -> tuple[Any, Relation]:
    shapes = np.random.default_rng(11)
    frame = pd.DataFrame(
        {
            "p": shapes.integers(0, 10, ROWS),
            "x": np.where(shapes.random(ROWS) < 0.3, np.nan, shapes.random(ROWS)),
            "g": np.array(["a", None, "c"], dtype=object)[shapes.integers(0, 3, ROWS)],
        }
    )
    table = dpsql.Table(frame, bounds={"p": (0, 9), "x": (0, 1)}, keys={"g": ["a", "c"]})
    schema = resolve("t", stored_columns(table.frame), table.declaration)
    relation = rows_alone(Scan(schema), {"t": ColumnStore(frame, schema)})
    assert relation is not None
    return schema, relation


def conditions(schema: Any) -> tuple[Expr, ...]:
    found = []
    for text in CONDITIONS:
        source = calibrated(schema, f"SELECT COUNT(*) FROM t WHERE {text}", U).exact.source
        assert isinstance(source, Filter)
        found.append(source.predicate)
    return tuple(found)


def check_together() -> None:
    """Over the blocks in turn, and there and back."""
    schema, relation = rows()
    exprs = conditions(schema)
    together = evaluators(exprs, relation)
    blocks = [(start, min(start + BLOCK, ROWS)) for start in range(0, ROWS, BLOCK)]
    for start, stop in [*blocks, *reversed(blocks)]:
        for expr in exprs:
            one, alone = together[expr](start, stop), evaluator(expr, relation)(start, stop)
            assert (one.where_valid() == alone.where_valid()).all()
            assert (one.values[one.where_valid()] == alone.values[one.where_valid()]).all()


def test_together_they_are_what_each_is_alone():
    check_together()


def test_what_they_have_in_common_is_computed_once_a_block(monkeypatch: pytest.MonkeyPatch):
    """The comparison and the look for NULL of the first two."""
    schema, relation = rows()
    exprs = conditions(schema)[:2]
    computed: list[Vector] = []
    real = plans._laid_out
    monkeypatch.setattr(plans, "_laid_out", lambda vector: computed.append(vector) or real(vector))  # type: ignore[func-returns-value]

    def calls(read: Mapping[Expr, Evaluator]) -> int:
        computed.clear()
        for expr in exprs:
            read[expr](0, BLOCK)
        return len(computed)

    assert calls({expr: evaluator(expr, relation) for expr in exprs}) - calls(evaluators(exprs, relation)) >= 3


def test_a_lie_about_the_block_is_caught():
    """Values of the block before are taken for those of this one."""

    def keep(patch: Any) -> None:
        patch.setattr(Evaluation, "_shared_of", lambda self, _start, _stop: self.shared or None)

    assert_caught(keep, check_together)

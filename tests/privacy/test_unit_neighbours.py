"""People, not rows: neighbours that differ in all that one person has, in every table.

No statistics: for many small databases every neighbour is run through the exact plan under the same hash key, and the
distances are compared in integers with what the release declares.
"""

from __future__ import annotations

import pytest

from tests.privacy import unit_checks
from tests.privacy.unit_checks import Question

SEED = 20_260_301


@pytest.mark.parametrize("asked", unit_checks.questions(), ids=str)
def test_every_kind_of_question(asked: Question):
    unit_checks.check_question(asked, SEED, databases=3)

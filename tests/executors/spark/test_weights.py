"""Groups chosen by weights: sums and answers as on the other engines."""

import pytest

from tests.core.test_weighted import check_answers, check_weights


def test_weights_are_summed_as_by_hand() -> None:
    check_weights("spark")


@pytest.mark.parametrize("neighbours", ["unbounded", "bounded"])
def test_answers(neighbours: str) -> None:
    check_answers(neighbours, "spark")

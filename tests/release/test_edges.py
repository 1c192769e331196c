"""Edges of sets of means and quotients: found from beyond, however many are sought at once."""

import numpy as np
import pytest

from dpsql.release.intervals.widths import edge


@pytest.mark.parametrize("groups", [1, 7, 1_000])
def test_the_edge_lies_beyond_the_set_by_next_to_nothing(groups: int):
    """Few are looked at by many points at once, many by one."""
    chance = np.random.default_rng(1)
    within, beyond = chance.uniform(-1, 0, groups), chance.uniform(1, 2, groups)
    ends = chance.uniform(0, 1, groups)
    found = edge(within, beyond, lambda points: points <= ends)
    assert (found > ends).all()
    assert (found - ends < 4e-15).all()


def test_either_side_is_sought_by_the_same_words():
    found = edge(np.array([[0.5], [0.5]]), np.array([[0.0], [1.0]]), lambda points: np.abs(points - 0.5) <= 0.25)
    assert np.abs(found[:, 0] - [0.25, 0.75]).max() < 1e-14
    assert found[0, 0] < 0.25
    assert found[1, 0] > 0.75


def test_of_a_set_that_is_split_the_part_furthest_out_that_is_seen_counts():
    found = edge(np.zeros(1), np.ones(1), lambda points: (points < 0.1) | ((points > 0.5) & (points < 0.75)))
    assert 0.75 <= found[0] < 0.75 + 1e-14


@pytest.mark.parametrize("beyond", [0.25, np.inf, np.nan])
def test_where_nothing_lies_beyond_the_point_within_is_the_edge(beyond: float):
    assert edge(np.array([0.25]), np.array([beyond]), lambda points: np.zeros(points.shape, dtype=bool))[0] == 0.25


def test_a_set_without_an_edge_reaches_as_far_as_is_looked():
    assert edge(np.zeros(300), np.ones(300), lambda points: points < 2).tolist() == [1.0] * 300

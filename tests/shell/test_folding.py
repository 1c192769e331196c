"""Long lines at a terminal are broken between words, and lose nothing."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.shell.output import folding
from dpsql.shell.output.folding import folded

FOOTER = (
    "spent epsilon 1 · left epsilon 29 of 30, delta 5e-07 of 1e-06 (5e-07 is kept to convert rho to epsilon) · "
    "29 more queries like this"
)


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")


def test_a_footer_is_broken_at_its_dots_first():
    assert folded(FOOTER, Screen()).split("\n") == [
        "spent epsilon 1 · left epsilon 29 of 30, delta 5e-07 of",
        "  1e-06 (5e-07 is kept to convert rho to epsilon)",
        "  · 29 more queries like this",
    ]
    assert max(map(len, folded(FOOTER, Screen()).split("\n"))) <= 60


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_what_is_no_terminal_gets_lines_as_they_are(stream: io.StringIO | None):
    assert folded(FOOTER * 3, stream) == FOOTER * 3


@given(st.text(st.sampled_from("ab ·|;,\n"), max_size=400), st.integers(20, 90))
def test_nothing_is_lost_and_no_line_is_too_long(text: str, width: int):
    lines = [line for each in text.split("\n") for line in folding._lines(each, width)]
    assert all(len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())

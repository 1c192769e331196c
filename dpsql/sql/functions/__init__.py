"""The functions of the language: one record each, found by name."""

from __future__ import annotations

from collections.abc import Mapping

from dpsql.sql.expressions import Function
from dpsql.sql.functions import (
    arithmetic,
    casts,
    comparison,
    conditional,
    date_parts,
    date_units,
    dates,
    logic,
    patterns,
    roots,
    rounding,
    text,
    text_casts,
)

FUNCTIONS: Mapping[str, Function] = {
    function.name: function
    for room in (
        arithmetic,
        rounding,
        roots,
        comparison,
        conditional,
        logic,
        casts,
        text_casts,
        dates,
        date_parts,
        date_units,
        text,
        patterns,
    )
    for function in room.FUNCTIONS
}

"""The functions of the language: one record each, found by name."""

from __future__ import annotations

from collections.abc import Mapping

from dpsql.sql.expressions import Function
from dpsql.sql.functions import arithmetic, comparison, conditional, logic

FUNCTIONS: Mapping[str, Function] = {
    function.name: function for room in (arithmetic, comparison, conditional, logic) for function in room.FUNCTIONS
}

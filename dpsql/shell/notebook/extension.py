"""`%load_ext dpsql`: registers the magics at once; their implementation is imported at first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpsql.shell.notebook.magic import Magic, Shown

_NAME = "dpsql"


class Magics:
    """%dpsql and %%dpsql of one IPython shell, whose variables they read."""

    def __init__(self, variables: dict[str, Any]) -> None:
        self._variables = variables
        self._magic: Magic | None = None

    @property
    def magic(self) -> Magic:
        """The implementation, created once."""
        if self._magic is None:
            from dpsql.shell.notebook.magic import Magic

            self._magic = Magic(self._variables)
        return self._magic

    def line(self, line: str) -> Shown | None:
        """%dpsql [OPTIONS] [NAME <<] SELECT ... | tables | add NAME | budget [EPSILON [DELTA]] | ledger |
        explain SELECT ... | connect NAME or URL"""
        return self.magic.line(line)

    def cell(self, line: str, cell: str) -> Shown | None:
        """%%dpsql [OPTIONS] [NAME <<] and a query below: its answer, shown or kept as NAME."""
        return self.magic.cell(line, cell)


def register(shell: Any) -> None:
    """Register the magics in an IPython shell. A repetition changes nothing, so that no budget is lost."""
    from IPython.core.magic import no_var_expand

    before = shell.magics_manager.magics["cell"].get(_NAME)
    if not isinstance(getattr(before, "__self__", None), Magics):
        magics = Magics(shell.user_ns)
        no_var_expand(Magics.line)  # queries are not subject to variable expansion
        no_var_expand(Magics.cell)
        shell.register_magic_function(magics.line, "line", _NAME)
        shell.register_magic_function(magics.cell, "cell", _NAME)

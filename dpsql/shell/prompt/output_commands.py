"""Commands for the format and destination of answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dpsql.answer.base import BaseResult
from dpsql.answer.chart import chart
from dpsql.errors import InvalidArgument
from dpsql.shell.output.modes import MODES
from dpsql.shell.prompt.command import ON_OFF, Command, ReadFile, on_off, switched
from dpsql.shell.shell import Shell


def _mode(shell: Shell, argument: str) -> str:
    if argument:
        shell.set_mode(argument)
        return ""
    return f"mode {shell.mode}; there are {', '.join(MODES)}"


def _once(shell: Shell, argument: str) -> str:
    if not argument:
        raise InvalidArgument("write the next answer where?", hint="Write .once FILE.")
    shell.write_once_to(_path(argument))
    return ""


def _output(shell: Shell, argument: str) -> str:
    before = shell.target
    shell.write_to(_path(argument) if argument else None)
    return "" if argument or before is None else f"answers go to the screen again, no longer to {before}"


def _read(_shell: Shell, argument: str) -> str:
    if not argument:
        raise InvalidArgument("read which file?", hint="Write .read FILE.")
    raise ReadFile(Path(_path(argument)).expanduser())


def _last(shell: Shell, _argument: str) -> str:
    shell.show_last()
    return ""


def _plot(shell: Shell, _argument: str) -> str:
    if not isinstance(shell.last, BaseResult):
        raise InvalidArgument("there is no answer to draw yet.", hint=".plot draws the last answer, free.")
    return chart(shell.last)


def _timer(shell: Shell, argument: str) -> str:
    shell.timer = switched(argument, ".timer", now=shell.timer)
    loaded = f"; the tables were loaded in {shell.loading:.2f} s" if shell.timer else ""
    return f"timer {on_off(on=shell.timer)}, of loading and planning alone{loaded}"


def _dry_run(shell: Shell, argument: str) -> str:
    shell.dry_run = switched(argument, ".dryrun", now=shell.dry_run)
    return "dry run on: queries are explained, and cost nothing" if shell.dry_run else "dry run off"


def _confirm(shell: Shell, argument: str) -> str:
    consent = shell.asker.consent
    on = switched(argument, ".confirm", now=not consent.everything)
    shell.asker.consent = replace(consent, everything=not on)
    return "large spends are asked about first" if on else "nothing is asked about before it is spent"


def _most_rows(shell: Shell, argument: str) -> str:
    if argument:
        if not argument.isdecimal():
            raise InvalidArgument(f".maxrows is a whole number, 0 for all, got {argument!r}.")
        shell.most_rows = int(argument) or None
    return "all rows are shown" if shell.most_rows is None else f"the first {shell.most_rows:,} rows are shown"


def _pager(shell: Shell, argument: str) -> str:
    shell.pager.on = switched(argument, ".pager", now=shell.pager.on)
    return f"pager {on_off(on=shell.pager.on)}"


def _path(argument: str) -> str:
    """Return a path, which may be quoted."""
    quoted = len(argument) > 1 and argument[0] == argument[-1] and argument[0] in "'\""
    return argument[1:-1] if quoted else argument


OUTPUT_COMMANDS = (
    Command(".mode", "[MODE]", f"how answers are written: {', '.join(MODES)}", _mode, "--mode MODE", MODES),
    Command(".once", "FILE", "write the next answer to a file", _once, "--output FILE"),
    Command(
        ".output", "[FILE]", "write answers to a file from now on; without one to the screen", _output, "--output FILE"
    ),
    Command(".last", "", "show the last answer again, free: in another mode, or to a file", _last),
    Command(".plot", "", "draw the last answer, free", _plot),
    Command(".confirm", "[on|off]", "ask before a large spend", _confirm, "--yes", ON_OFF),
    Command(".maxrows", "[N]", "how many rows of an answer are shown on the screen; 0 for all", _most_rows),
    Command(".pager", "[on|off]", "long answers a page at a time", _pager, choices=ON_OFF),
    Command(".read", "FILE", "run what a file holds", _read, "-f FILE"),
    Command(".timer", "[on|off]", "how long loading and planning took", _timer, choices=ON_OFF),
    Command(".dryrun", "[on|off]", "explain queries, and ask none", _dry_run, "--dry-run", ON_OFF),
)

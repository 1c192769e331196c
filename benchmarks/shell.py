"""How long a person waits: from start to prompt, for a completion, for 1.5 million lines of CSV, for the magics.

Each figure is the best of several runs, in seconds of the clock and of the processor, since the first depends on what
else the machine is doing. Beside them stands what `import pandas` takes, which is no work of dpsql's. Modules are
compiled beforehand, as they are once installed. Needs Linux, which tells the seconds of a process that goes on.
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd

import dpsql
from dpsql.shell.output.describe import tables_of
from dpsql.shell.prompt.commands import COMMANDS
from dpsql.shell.prompt.completion import Completer

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "adult_sample" / "adult.toml"
LINES = 1_500_000
TOML = """
[budget]
epsilon = 3.0
[tables.big]
path = "big.csv"
[tables.big.columns]
id = { type = "integer" }
age = { type = "integer", bounds = [17, 90] }
city = { type = "text", keys = ["Lyon", "Brest"] }
pay = { type = "real", bounds = [0, 100000] }
"""


def best(run: Callable[[], None], times: int = 5) -> tuple[float, float]:
    """The least seconds of the clock, and of the processor (with children)."""
    walls, cpus = [], []
    for _ in range(times):
        start, before = time.perf_counter(), _cpu()
        run()
        walls.append(time.perf_counter() - start)
        cpus.append(_cpu() - before)
    return min(walls), min(cpus)


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def environment(compiled: Path) -> dict[str, str]:
    """Of the processes that are measured. compiled: a folder that keeps the modules of the first of them."""
    kept = {name: word for name, word in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {
        "PYTHONPATH": str(ROOT),
        "PYTHONPYCACHEPREFIX": str(compiled),
        "DPSQL_HISTORY": "",
        "TERM": "xterm",
    }


def to_prompt(schema: Path, env: dict[str, str], times: int = 5) -> tuple[float, float]:
    """From the start of the command at a pseudo-terminal to its prompt."""
    runs = [_to_prompt(schema, env) for _ in range(times)]
    walls, cpus = zip(*runs, strict=True)
    return min(walls), min(cpus)


def _to_prompt(schema: Path, env: dict[str, str]) -> tuple[float, float]:
    import pexpect

    words = ["-m", "dpsql", "--schema", str(schema), "--no-ledger"]
    start = time.perf_counter()
    child = pexpect.spawn(sys.executable, words, env=env, encoding="utf-8", timeout=120)
    child.expect("dpsql>")
    wall = time.perf_counter() - start
    used = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()  # see proc(5)
    cpu = (int(used[11]) + int(used[12])) / os.sysconf("SC_CLK_TCK")
    child.send("\x1b[1;1R\x04")  # where the cursor is, which the toolkit asks for; then the end
    child.expect(pexpect.EOF)
    child.close()
    return wall, cpu


def python(code: str, env: dict[str, str]) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, env=env)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = measured(Path(folder))
    print(f"{'':<36}{'clock':>9}{'processor':>11}")
    for name, wall, cpu in table:
        print(f"{name:<36}{wall:>8.3f}s{cpu:>10.3f}s")


def measured(folder: Path) -> list[tuple[str, float, float]]:
    """What is measured, with files of its own in a folder."""
    env = environment(folder / "compiled")
    python("import dpsql.shell.prompt.terminal, IPython", env)
    table = [("import pandas", *best(lambda: python("import pandas", env)))]
    table.append(("start to prompt, the sample", *to_prompt(SAMPLE, env)))
    draw = random.Random(1)
    rows = (f"{n},{draw.randint(17, 90)},Lyon,{draw.randint(1000, 90000)}\n" for n in range(LINES))
    (folder / "big.csv").write_text("id,age,city,pay\n" + "".join(rows))
    (folder / "big.toml").write_text(TOML)
    table.append((f"start to prompt, {LINES:,} lines", *to_prompt(folder / "big.toml", env, 3)))
    magics = (
        "import pandas\nfrom IPython.core.interactiveshell import InteractiveShell\nshell = InteractiveShell.instance()"
    )
    without = best(lambda: python(magics, env))
    loaded = best(lambda: python(f"{magics}\nshell.extension_manager.load_extension('dpsql')", env))
    table.append(("magics beyond pandas and IPython", *(a - b for a, b in zip(loaded, without, strict=True))))
    frame = pd.DataFrame({f"column-{number}": [1] for number in range(1000)})
    session = dpsql.Session({"t": frame}, budget=dpsql.Budget(1))
    completer = Completer(tables_of(session), COMMANDS)
    table.append(("a completion among 1,000 columns", *best(lambda: completer.candidates("SELECT AVG(col"))))
    return table


if __name__ == "__main__":
    main()

"""The magics in a real kernel: what is shown, what is kept, and how an error looks and stops the notebook."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

import dpsql
from dpsql.errors import InvalidArgument
from dpsql.shell.notebook.magic_options import Options, ResultVariable, kept_in, read_options

START = """
import pandas as pd, dpsql
frame = pd.DataFrame({"age": [40] * 300, "sex": ["Female"] * 100 + ["Male"] * 200})
people = dpsql.declare(frame, bounds={"age": (0, 100)}, keys={"sex": ["Female", "Male"]})
%load_ext dpsql
"""


@pytest.fixture(autouse=True)
def _kernels_find_the_package(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(dpsql.__file__).parents[1]))


def execute(*cells: str, allow_errors: bool = False) -> NotebookNode:
    """The notebook of these cells after a run in a kernel of its own."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in cells])
    client = NotebookClient(notebook, kernel_name="python3", timeout=60, allow_errors=allow_errors)
    try:
        client.execute()
    except CellExecutionError:
        assert not allow_errors
    return notebook


def shown(cell: NotebookNode, kind: str = "text/plain") -> str:
    """What the cell returned, or printed; an error as its traceback."""
    texts = []
    for output in cell.outputs:
        if output.output_type == "error":
            texts.append("\n".join(output.traceback))
        elif output.output_type == "stream":
            texts.append(output.text.rstrip())
        else:
            texts.append(output.data.get(kind, ""))
    return "\n".join(texts)


def test_a_notebook_from_its_first_cell_to_an_empty_budget():
    cells = execute(
        START,
        "%dpsql",
        "%%dpsql --epsilon 1\nSELECT COUNT(*) FROM people",
        "%dpsql budget 3 1e-6",
        "%dpsql tables",
        "%%dpsql --epsilon 1\nSELECT sex, COUNT(*) AS n FROM people GROUP BY sex;",
        "%%dpsql --epsilon=0.5 out <<\nSELECT COUNT(*) AS n FROM people;",
        "print(type(out).__name__, list(out.df), out.loss)",
        "%%dpsql\nSELECT COUNT(*) AS n FROM people",
        "%dpsql explain --epsilon 1 SELECT COUNT(*) AS n FROM people WHERE sex = '{frame}'",
        "%%dpsql --epsilon 1\nEXPLAIN PRIVACY SELECT COUNT(*) AS n FROM people",
        "%reload_ext dpsql\n%dpsql budget",
        "%%dpsql --delta 1e-7 --epsilon 2\nSELECT COUNT(*) AS n FROM people",
        "session = dpsql.Session({'t': frame}, budget=dpsql.Budget(1), epsilon=0.125)",
        "%dpsql connect session",
        "%%dpsql\nSELECT COUNT(*) AS n FROM t",
        allow_errors=True,
    ).cells
    assert shown(cells[0]) == ""
    assert "%dpsql budget [EPSILON [DELTA]]" in shown(cells[1])
    assert shown(cells[2]).startswith("InvalidArgument: no budget: how much may all answers of this notebook")
    assert shown(cells[3]).startswith("budget  epsilon 3, delta 1e-06\nspent   epsilon 0 in 0 queries")
    assert shown(cells[4]) == "people"
    assert "| Female | " in shown(cells[5])
    assert "spent epsilon 1 · left epsilon 2 of 3" in shown(cells[5])
    assert shown(cells[5], "text/html").startswith("<table")
    assert shown(cells[6]) == ""
    assert shown(cells[7]) == "Result ['n'] epsilon 0.5"
    assert shown(cells[8]).endswith("\n  Add --epsilon 1, or less for stronger privacy.")
    assert "sex = '{frame}'" in shown(cells[9])  # no variable is put into the text
    assert shown(cells[10]).startswith("Protects   one row of people")
    assert "spent   epsilon 1.5 in 2 queries" in shown(cells[11])  # a second load forgets nothing
    assert shown(cells[12]).startswith("BudgetExceeded: this query costs epsilon 2 but 1.5 is left")
    assert shown(cells[14]).startswith("budget  epsilon 1\n")
    assert "spent epsilon 0.125 · left epsilon 0.875 of 1" in shown(cells[15])


def test_an_error_is_one_clean_block_and_stops_the_notebook():
    cells = execute(
        START + "%dpsql budget 1", "%%dpsql --epsilon 1\nSELECT SUM(agee) FROM people;", "print('never')"
    ).cells
    [error] = cells[1].outputs
    assert (error.output_type, error.ename) == ("error", "UnknownColumn")
    assert "\n".join(error.traceback) == (
        'UnknownColumn: no column "agee" in people. Did you mean "age"?\n'
        "  LINE 1: SELECT SUM(agee) FROM people\n"
        "                     ^^^^"
    )
    assert cells[2].outputs == []


def test_a_query_on_one_line_with_variables_a_picture_and_plain_calls():
    cells = execute(
        START + "%dpsql budget 9",
        "low, name = 30, 'Male'\n%dpsql --epsilon 1 SELECT COUNT(*) AS n FROM people WHERE age > :low AND sex = :name",
        "%dpsql --epsilon 1 kept= << SELECT sex, COUNT(*) AS n FROM people GROUP BY sex",
        "x = %dpsql --epsilon 1 SELECT sex, COUNT(*) AS n FROM people GROUP BY sex\nprint(x['n'].equals(kept['n']))",
        "%dpsql --epsilon 1 --plot SELECT sex, COUNT(*) AS n FROM people GROUP BY sex",
        "%%dpsql --epsilon 1 --dry-run\nSELECT AVG(age) AS a FROM people",
        "low = frame\n%dpsql --epsilon 1 SELECT COUNT(*) AS n FROM people WHERE age > :low",
        "def ask():\n    return dpsql.query(people, 'SELECT SUM(agee) FROM people', epsilon=1)\n\nask()",
        "%dpsql SHOW TABLES",
        "more = dpsql.Table(frame, bounds={'age': (0, 9)})\n%dpsql add more",
        "%dpsql ledger",
        allow_errors=True,
    ).cells
    assert "left epsilon 8 of 9" in shown(cells[1])
    assert "| Female | " in shown(cells[2])
    assert shown(cells[3]) == "True"
    figure, table = cells[4].outputs
    assert "image/png" in figure.data
    assert "position:absolute" in table.data["text/html"]  # a bar beside each interval
    assert shown(cells[5]).startswith("Protects   one row of people")
    assert shown(cells[5], "text/html").startswith("<pre")
    assert shown(cells[6]).startswith("InvalidParameter: :low cannot be a DataFrame.")
    assert shown(cells[7]).split("\n") == [
        'UnknownColumn: no column "agee" in people. Did you mean "age"?',
        "  LINE 1: SELECT SUM(agee) FROM people",
        "                     ^^^^",
        "  at line 2: return dpsql.query(people, 'SELECT SUM(agee) FROM people', epsilon=1)",
    ]
    assert "each row is one person's" in shown(cells[8])
    assert shown(cells[9]) == "people\nmore"
    assert len(shown(cells[10]).split("\n")) == 2


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("out <<", ResultVariable("out", shown=False, rest="")),
        ("out= << SELECT 1", ResultVariable("out", shown=True, rest="SELECT 1")),
        ("SELECT a << 2", ResultVariable(None, shown=True, rest="SELECT a << 2")),
        ("SELECT 'a << 2'", ResultVariable(None, shown=True, rest="SELECT 'a << 2'")),
        ("", ResultVariable(None, shown=True, rest="")),
    ],
)
def test_what_keeps_an_answer(line: str, kept: ResultVariable):
    assert kept_in(line) == kept


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("", Options(None, None, "")),
        ("  out <<", Options(None, None, "out <<")),
        ("--epsilon 1", Options(1, None, "")),
        ("--epsilon=.5  --delta\t1e-6 out <<", Options(0.5, 1e-6, "out <<")),
        (
            "--plot --dry-run --error 5 --mechanism laplace x",
            Options(None, None, "x", error=5, mechanism="laplace", plot=True, dry_run=True),
        ),
        ("--dialect mysql x", Options(None, None, "x", dialect="mysql")),
        ("--delta 0 SELECT 1 -- 2", Options(None, 0, "SELECT 1 -- 2")),
    ],
)
def test_options_before_a_query(line: str, options: Options):
    assert read_options(line) == options


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--epsilo 1", 'no option "--epsilo". Did you mean "--epsilon"?'),
        ("--epsilon", "--epsilon must be a number, got ''."),
        ("--epsilon much", "--epsilon must be a number, got 'much'."),
        ("-- 1", 'no option "--".'),
    ],
)
def test_options_gone_wrong(line: str, message: str):
    with pytest.raises(InvalidArgument) as raised:
        read_options(line)
    assert message in str(raised.value)


class Shell:
    """As much of an IPython shell as a registration sees."""

    def __init__(self) -> None:
        self.user_ns: dict[str, object] = {}
        self.magics_manager = self
        self.magics: dict[str, dict[str, object]] = {"line": {}, "cell": {}}

    def register_magic_function(self, function: object, kind: str, name: str) -> None:
        self.magics[kind][name] = function


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("frobnicate", '%dpsql does not know "frobnicate".'),
        ("buget", 'Did you mean "budget"?'),
        ("budget 1 2 3", "a budget is an epsilon and, if need be, a delta."),
        ("budget much", "a budget must be a number, got 'much'."),
        ("connect", 'no variable ""'),
        ("explain", "no budget"),
    ],
)
def test_a_line_gone_wrong(line: str, message: str):
    shell = Shell()
    dpsql.load_ipython_extension(shell)
    with pytest.raises(InvalidArgument) as raised:
        shell.magics["line"]["dpsql"](line)
    assert message in "\n".join(raised.value._render_traceback_())


@pytest.mark.parametrize("line", ["out", "out << 1", "1x <<", "for <<", "<<", "a.b <<", "SELECT 1"])
def test_a_name_gone_wrong_asks_nothing(line: str):
    shell = Shell()
    dpsql.load_ipython_extension(shell)
    session = dpsql.Session({"t": dpsql.declare(pd.DataFrame({"x": [1]}))}, budget=dpsql.Budget(2))
    shell.user_ns["session"] = session
    with pytest.raises(InvalidArgument):
        shell.magics["cell"]["dpsql"](f"--epsilon 1 {line}", "SELECT COUNT(*) FROM t")
    assert session.ledger() == ()
    shell.magics["cell"]["dpsql"]("--epsilon 1 out <<", "SELECT COUNT(*) FROM t")
    assert len(session.ledger()) == 1
    assert isinstance(shell.user_ns["out"], dpsql.Result)


LOADED = """
import sys
from types import SimpleNamespace
import dpsql
magics = SimpleNamespace(magics={"line": {}, "cell": {}})
given = []
shell = SimpleNamespace(user_ns={}, magics_manager=magics, register_magic_function=lambda *each: given.append(each))
dpsql.load_ipython_extension(shell)
print(len(given), sorted(name for name in sys.modules if name.startswith("dpsql.")))
"""


def test_the_magics_are_there_at_once_and_what_stands_behind_them_when_it_is_used():
    run = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == "2 ['dpsql.shell', 'dpsql.shell.notebook.extension', 'dpsql.shell.interrupts']"

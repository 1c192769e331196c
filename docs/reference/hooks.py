"""What the site's pages say of the code, asked of the code when the site is built (a hook of MkDocs)."""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
DECISIONS = DOCS / "decisions"  # for contributors, who have the files: `exclude_docs` leaves them out of the site
_FENCE = re.compile(r"^```(\w+) [^\n`]*$", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\[\]]+)\]\(((?:\.\./|decisions/)[^()\s]+)\)")
_COLOURS = re.compile(r"\x1b\[[\d;]*m")
_MARK = re.compile(r"<!-- made by code: (\w+) -->")


def on_page_markdown(markdown: str, page: Any = None, **_: Any) -> str:
    """A page with its marks filled in, and its blocks of code with the language alone behind their fences: what tests
    read there, such as `sql refused`, MkDocs does not. Links to files beside the site are their words."""
    markdown = _FENCE.sub(r"```\1", markdown)
    if page is not None:
        folder = (DOCS / page.file.src_uri).parent
        markdown = _LINK.sub(lambda link: link[0] if within(folder / link[2]) else link[1], markdown)
    return _MARK.sub(lambda mark: MADE[mark[1]](), markdown)


def within(target: Path) -> bool:
    """True if the site has the file."""
    path = Path(os.path.normpath(target))
    return path.is_relative_to(DOCS) and not path.is_relative_to(DECISIONS)


GROUPS = {
    "Get started": ("first-steps.md", "tutorial.md"),
    "Analysts": (
        "cookbook.md",
        *(f"sql/{page}.md" for page in ("query", "aggregates", "joins", "functions", "post-processing", "limits")),
        *("shell.md", "notebook.md", "results.md", "client.md"),
    ),
    "Owners": (
        "owners/README.md",
        "owners/begin.md",
        "units.md",
        *(f"owners/{page}.md" for page in ("bounds", "groups", "epsilon", "budget", "publishing", "analysts")),
        *("owners/data-protection.md", "owners/glossary.md"),
        "server.md",
        "text-files.md",
        "accounting.md",
        "engines.md",
        "spark.md",
        "scale.md",
        "tpch.md",
    ),
    "Auditors": ("owners/promise.md", "proofs", "privacy", "accuracy", "k-norm.md"),
    "Reference": ("reference", "public.md", "compatibility.md", "changelog.md"),
    "Contributors": ("contributing.md",),
}
"""Pages, and folders with all their pages; what is named nowhere comes last."""


def on_config(config: Any) -> Any:
    """The site's navigation, of the pages that there are."""
    config["nav"] = navigation(Path(config["docs_dir"]))
    return config


def navigation(docs: Path) -> list[Any]:
    """Every page once, in its group; a folder's README first."""
    left = sorted(page.relative_to(docs).as_posix() for page in docs.rglob("*.md") if within(page))
    nav: list[Any] = ["index.md"]
    left.remove("index.md")
    for title, names in GROUPS.items():
        pages = [page for name in names for page in left if page == name or page.startswith(f"{name}/")]
        nav.append({title: sorted(pages, key=lambda page: (_place(page, names), not page.endswith("README.md")))})
        left = [page for page in left if page not in pages]
    return [*nav, {"More": left}] if left else nav


def _place(page: str, names: tuple[str, ...]) -> int:
    return next(place for place, name in enumerate(names) if page == name or page.startswith(f"{name}/"))


def command() -> str:
    """What --help says."""
    from dpsql.shell.cli import main

    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        main(["--help"])
    return f"```text\n{told.getvalue().rstrip()}\n```"


def prompt() -> str:
    """The prompt's commands."""
    from dpsql.shell.prompt.commands import COMMANDS

    rows = []
    for each in COMMANDS:
        written = f"{each.name} {each.argument}".strip().replace("|", "\\|")
        rows.append(f"| `{written}` | {each.purpose} |")
    return "\n".join(["| Command | What it does |", "|---|---|", *rows])


def errors() -> str:
    """The tree of errors: what each means, the command's exit code where a statement meets it, and what to do."""
    from dpsql.errors import DPSQLError
    from dpsql.shell.batch import code_of

    def below(kind: type[DPSQLError]) -> list[type[DPSQLError]]:
        return [
            each for each in kind.__subclasses__() if each.__module__ == DPSQLError.__module__
        ]  # others stay inside

    def tree(kind: type[DPSQLError], depth: int) -> list[str]:
        return [
            f"{'    ' * depth}{kind.__name__}",
            *(x for each in below(kind) for x in tree(each, depth + 1)),
        ]

    def rows(kind: type[DPSQLError]) -> list[str]:
        meaning = " ".join((kind.__doc__ or "").split())
        cells = (f"<nobr>`{kind.__name__}`</nobr>", meaning, str(int(code_of(kind("")))), kind.remedy)
        row = "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
        return [row, *(line for each in below(kind) for line in rows(each))]

    head = ["| Error | What it means | Exit | What to do |", "|---|---|---|---|"]
    return "\n".join(["```text", *tree(DPSQLError, 0), "```", "", *head, *rows(DPSQLError)])


def messages() -> str:
    """The texts that people see."""
    page: Callable[[], str] = runpy.run_path(str(Path(__file__).with_name("message_texts.py")))["page"]
    return page()


def tutorial() -> str:
    """The tutorial's notebook, run in a kernel beside a copy of the sample, with what its cells give."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(ROOT / "docs" / "tutorial.ipynb", as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("adult.csv", "adult.toml"):
            shutil.copy(ROOT / "adult_sample" / name, folder)
        place = {"metadata": {"path": folder}}
        client = NotebookClient(notebook, kernel_name="python3", timeout=300, resources=place)
        client.execute(env={**os.environ, "PYTHONPATH": str(ROOT)})
    return "\n\n".join(part for cell in notebook.cells for part in _parts(cell))


def _parts(cell: Any) -> Iterator[str]:
    """A cell as Markdown: its text, or its code and what came of it."""
    if cell.cell_type == "markdown":
        yield cell.source
        return
    yield f"```python\n{cell.source}\n```"
    for output in cell.outputs:
        if output.output_type == "stream":
            yield _as_text(output.text)
        elif output.output_type == "error":
            yield _as_text("\n".join(output.traceback))
        elif "image/png" in output.data:
            picture = "".join(output.data["image/png"].split())
            yield f'<img alt="The answer as a picture" src="data:image/png;base64,{picture}">'
        elif "text/html" in output.data:
            lines = output.data["text/html"].splitlines()
            yield f"<div>{'&#10;'.join(lines)}</div>"  # on one line, so that nothing in it is read as Markdown
        else:
            yield _as_text(output.data["text/plain"])


def _as_text(text: str) -> str:
    return f"```text\n{_COLOURS.sub('', text).rstrip()}\n```"


MADE: dict[str, Callable[[], str]] = {
    "command": command,
    "prompt": prompt,
    "errors": errors,
    "messages": messages,
    "tutorial": tutorial,
}

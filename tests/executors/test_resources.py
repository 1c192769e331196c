"""What an engine may use of the machine: words that make sense, and engines that keep to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsql
from dpsql.errors import InvalidArgument
from dpsql.executors.duckdb.instance import memory_of, opened
from dpsql.executors.resources import Resources
from dpsql.testing import insecure_exact
from tests.executors.contract import KEY

FRAME = pd.DataFrame({"who": [1, 1, 1, 2, 3], "x": [1, 2, 3, 4, 5]})
SQL = "SELECT COUNT(*), SUM(x) FROM t"


def session(**words: Any) -> dpsql.Session:
    table = dpsql.Table(FRAME, unit="who", max_rows=2, bounds={"x": (0, 5)})
    return dpsql.Session({"t": table}, budget=dpsql.Budget(10), **words)


def test_words():
    assert Resources.of("4GB", 2) == Resources(4 * 1000**3, 2)
    assert Resources.of("1.5 GiB").memory == 3 * 1024**3 // 2
    assert Resources.of().words == []
    assert Resources.of("200MB").over(Resources.of("4GB", 3)) == Resources(200 * 1000**2, 3)


@pytest.mark.parametrize(
    "words",
    [
        *({"memory": word} for word in ("4", "4XB", "", "-4GB", "inf GB", "1MB", "1001TB", 4, True, "4GB; SET x = 1")),
        *({"threads": word} for word in (0, -1, 1.5, True, "2", 10**6)),
        *({"spill": word} for word in ("", 3, "/no/such/folder", __file__)),
    ],
)
def test_words_that_make_no_sense(words: dict[str, Any]):
    with pytest.raises(InvalidArgument, match=next(iter(words))):
        session(engine="duckdb", **words)


@pytest.mark.parametrize("word", ["100MB", "4GB", "1000TB"])
def test_the_instance_says_what_it_may_use(word: str):
    resources = Resources.of(word)
    assert resources.memory is not None
    connection = opened(resources=resources)
    assert abs(memory_of(connection) / resources.memory - 1) < 0.01
    connection.close()


def test_pandas_keeps_to_none():
    with pytest.raises(InvalidArgument, match="memory is said of an engine"):
        session(memory="4GB")
    with pytest.raises(InvalidArgument, match="threads is said of an engine"):
        dpsql.query(FRAME, SQL, epsilon=1, bounds={"x": (0, 5)}, threads=2)


def test_they_reach_the_instance_and_the_folder_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from dpsql.executors.duckdb import executor

    seen: list[tuple[Any, ...]] = []
    honest = executor.passes

    def looked(connection: Any, *rest: Any) -> int:
        names = "'threads', 'memory_limit', 'temp_directory', 'temp_file_encryption'"
        rows = connection.execute(f"SELECT name, value FROM duckdb_settings() WHERE name IN ({names})").fetchall()
        folders = list(tmp_path.iterdir())
        seen.append((dict(rows), [each.stat().st_mode & 0o777 for each in folders], [str(each) for each in folders]))
        return honest(connection, *rest)

    monkeypatch.setattr(executor, "passes", looked)
    held = session(engine="duckdb", memory="512MiB", threads=1, spill=tmp_path)
    assert insecure_exact(held, SQL, KEY, epsilon=1) == insecure_exact(session(), SQL, KEY, epsilon=1)
    ((settings, modes, folders),) = seen
    assert settings["threads"] == "1"
    assert settings["memory_limit"] == "512.0 MiB"
    assert settings["temp_file_encryption"] == "true"
    assert [settings["temp_directory"]] == folders
    assert modes == [0o700]
    assert list(tmp_path.iterdir()) == []


def test_the_owners_file_says_them(tmp_path: Path):
    (tmp_path / "room").mkdir()
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    file = tmp_path / "owner.toml"
    text = 'engine = "duckdb"\nmemory = "1GB"\nthreads = 2\nspill = "room"\n[tables.t]\npath = "t.csv"\n'
    file.write_text(text)
    schema = dpsql.Schema.from_toml(file)
    assert schema.resources == Resources(10**9, 2, (tmp_path / "room").absolute())
    held = dpsql.Session(schema=schema, budget=dpsql.Budget(1), threads=1)
    assert held._engine.resources == Resources(10**9, 1, (tmp_path / "room").absolute())  # type: ignore[attr-defined]
    file.write_text(text.replace('"1GB"', "1"))
    with pytest.raises(InvalidArgument, match="memory"):
        dpsql.Schema.from_toml(file)

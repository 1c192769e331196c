"""What the rows have beside the declarations, for the owner's eyes."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsql.owner import Finding, check_data
from dpsql.shell.cli import main

CUSTOMERS = "id,who,age\n1,ann,30\n2,bob,130\n2,cyd,50\n,dan,x\n5,ann,3\n"
ORDERS = "c,amount,kind\n1,5,a\n1,6,b\n1,7,z\n9,1,a\n,1,a\n"
TOML = """
[tables.c]
path = "c.csv"
unit = "who"
max_rows = 1
unique = ["id"]
[tables.c.columns]
id = { type = "integer" }
age = { type = "integer", bounds = [0, 100], nullable = false }
[tables.o]
path = "o.csv"
unit = "c -> c.id"
max_rows = 2
[tables.o.columns]
c = { type = "integer" }
amount = { type = "integer", bounds = [0, 6] }
kind = { type = "text", keys = ["a", "b"] }
"""


def counted(findings: tuple[Finding, ...]) -> dict[tuple[str, str], int]:
    return {(each.table, each.what.split(" = ")[0]): each.rows for each in findings}


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    (tmp_path / "c.csv").write_text(CUSTOMERS)
    (tmp_path / "o.csv").write_text(ORDERS)
    (tmp_path / "s.toml").write_text(TOML)
    return tmp_path / "s.toml"


def test_each_kind_is_counted(schema: Path):
    assert counted(check_data(schema)) == {
        ("c", "id is declared unique, and shared"): 2,
        ("c", "age outside its bounds"): 1,
        ("c", "age is declared never NULL, and is, or cannot be read"): 1,
        ("c", "beyond max_rows"): 1,
        ("o", "amount outside its bounds"): 1,
        ("o", "kind not among its keys"): 1,
        ("o", "owned by nobody, as the unit is NULL or leads nowhere"): 2,
        ("o", "beyond max_rows"): 1,
    }


def test_the_command_says_whose_eyes_it_is_for(schema: Path, sample: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["check", str(schema), "--data"]) == 1
    assert capsys.readouterr().out.startswith("FOR THE OWNER'S EYES ONLY")
    assert main(["check", str(sample / "adult.toml"), "--data"]) == 0
    assert "every row is as declared" in capsys.readouterr().out
    assert not list(schema.parent.glob("*.ledger"))
    assert not list(sample.glob("*.ledger"))


def test_the_same_of_parquet_files(schema: Path):
    pd = pytest.importorskip("pandas")
    for name in ("c", "o"):
        frame = pd.read_csv(schema.parent / f"{name}.csv")
        if name == "c":
            frame["age"] = pd.to_numeric(frame["age"], errors="coerce").astype("Int64")
            frame["id"] = frame["id"].astype("Int64")
        else:
            frame["c"] = frame["c"].astype("Int64")
        frame.to_parquet(schema.parent / f"{name}.parquet")
    text = TOML.replace(".csv", ".parquet")
    schema.write_text(text)
    found = counted(check_data(schema))
    assert found["o", "owned by nobody, as the unit is NULL or leads nowhere"] == 2
    assert found["c", "id is declared unique, and shared"] == 2
    assert len(found) == 8

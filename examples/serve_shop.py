"""The shop on a server of its own, with two analysts. Runs until it is interrupted.

python examples/serve_shop.py [PORT]
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "shop"
DPSQL = [sys.executable, "-m", "dpsql"]
ANALYSTS = {"alice": "customer,orders,items,product,country", "bob": "customer,country"}


def prepared(folder: Path) -> Path:
    """The shop's data and its owner's file, which says where they are."""
    subprocess.run([sys.executable, str(FOLDER / "make.py"), str(folder)], check=True, stdout=subprocess.DEVNULL)
    text = (FOLDER / "shop.toml").read_text(encoding="utf-8")
    schema = folder / "shop.toml"
    schema.write_text(
        re.sub(r"^(\[tables\.(\w+)\])$", r'\1\npath = "\2.csv"', text, flags=re.MULTILINE), encoding="utf-8"
    )
    return schema


def token_of(schema: Path, name: str) -> str:
    command = [*DPSQL, "access", "add", name, "--schema", str(schema), "--epsilon", "4", "--delta", "4e-7"]
    command += ["--tables", ANALYSTS[name], "--days", "1"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[0]


def main() -> None:
    port = sys.argv[1] if len(sys.argv) > 1 else "8443"
    with tempfile.TemporaryDirectory() as name:
        schema = prepared(Path(name))
        for analyst in ANALYSTS:
            print(f"{analyst}: {token_of(schema, analyst)}")
        print(f"Open http://127.0.0.1:{port} in a browser and sign in by a token, once the first line below is there.")
        print(f"Or ask from here: DPSQL_TOKEN=... dpsql --connect http://127.0.0.1:{port} --epsilon 0.1")
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            subprocess.run([*DPSQL, "serve", str(schema), "--port", port], check=False)


if __name__ == "__main__":
    main()

"""The steps of the Dockerfile one by one, where there is no engine for containers, and its unit of systemd."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.remote.serving import COUNT, Server, shop, token_for

ROOT = Path(__file__).parent.parent.parent


def test_files_of_a_service_name_what_there_is():
    lines = (ROOT / "Dockerfile").read_text()
    for each in re.findall(r"^COPY (?!--from)(.*) \S+$", lines, flags=re.MULTILINE):
        for name in each.split():
            assert (ROOT / name).exists(), name
    assert re.search(r"^USER dpsql$", lines, flags=re.MULTILINE), "not root"
    unit = configparser.ConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(ROOT / "packaging" / "dpsql-server.service")
    assert unit["Service"]["ProtectSystem"] == "strict"
    assert "dpsql serve" in unit["Service"]["ExecStart"]
    assert unit["Service"]["User"] != "root"


@pytest.mark.slow
def test_the_steps_of_the_image_serve_data_that_are_read_only(tmp_path: Path):
    """An environment with the package alone; data and code that cannot be written; a user who is not root, where the
    tests have the right to become one."""
    source, made, data, kept = (tmp_path / name for name in ("src", "dpsql", "data", "ledger"))
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "dpsql", source / "dpsql", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([sys.executable, "-m", "venv", str(made)], check=True)
    subprocess.run([str(made / "bin" / "pip"), "install", "--quiet", f"{source}[server]"], check=True)
    data.mkdir()
    kept.mkdir()
    schema = shop(data, rows=100)
    schema.write_text(schema.read_text().replace("[budget]", f'[budget]\nledger = "{kept}/shop.ledger"'))
    token = token_for(schema, "ann")
    for each in (*data.iterdir(), data):
        each.chmod(0o555 if each.is_dir() else 0o444)
    user = 65_534 if os.geteuid() == 0 else None
    if user is not None:
        tmp_path.chmod(0o755)
        for parent in tmp_path.parents[:2]:
            parent.chmod(0o755)
        for each in (kept, *kept.iterdir()):
            os.chown(each, user, user)
    command = [str(made / "bin" / "dpsql"), "serve", schema.name, "--port", "0"]
    environment = {"PATH": str(made / "bin"), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(kept)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=data, env=environment, user=user) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        try:
            server = Server(schema, json.loads(first)["address"], process)
            assert server.ask(token, COUNT).status_code == 200
            assert httpx.get(f"{server.address}/healthz").json() == {"status": "ok"}
        finally:
            process.terminate()
            process.wait(60)
    assert {each.name for each in data.iterdir()} == {"customers.csv", "orders.csv", "visits.csv", "shop.toml"}

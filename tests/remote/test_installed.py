"""The steps of the Dockerfile one by one, where there is no engine for containers, and its unit of systemd."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.remote.serving import COUNT, shop, token_for

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


def steps_of(dockerfile: str) -> list[tuple[str, str]]:
    """Each instruction with what it says, lines that go on put together."""
    lines = re.sub(r"^#.*\n", "", dockerfile, flags=re.MULTILINE).replace("\\\n", " ").splitlines()
    return [(word, said.strip()) for word, _, said in (line.partition(" ") for line in lines if line)]


class Image:
    """A folder in which the steps of a Dockerfile are done as they stand there, with the folder before each path. What
    takes another user's rights (`useradd`, and folders of that user) is done by what the test has."""

    def __init__(self, root: Path, user: int | None) -> None:
        self.root, self.user = root, user
        self.environment = {"HOME": str(root / "ledger")}
        self.command: list[str] = []
        self.workdir = root
        self.done: list[str] = []

    def inside(self, said: str) -> str:
        """The words with whole paths in the folder."""
        return re.sub(r"(?<![\w.$])/(?=src|opt|ledger|data|tls|tmp)", f"{self.root}/", said)

    def do(self, word: str, said: str) -> None:
        self.done.append(word)
        if word == "COPY" and not said.startswith("--from"):
            *names, target = said.split()
            for name in names:
                self.copy(ROOT / name, self.root / target.lstrip("/"), into=target.endswith("/"))
        elif word == "RUN":
            for each in said.split("&&"):
                self.run(self.inside(each.strip()))
        elif word == "ENV":
            own = dict(each.split("=", 1) for each in self.inside(said).split())
            self.environment |= {name: value.replace("$PATH", "/usr/bin:/bin") for name, value in own.items()}
        elif word == "WORKDIR":
            self.workdir = Path(self.inside(said))
        elif word in ("ENTRYPOINT", "CMD"):
            self.command += json.loads(said)

    def copy(self, source: Path, target: Path, *, into: bool) -> None:
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            return
        target.mkdir(parents=True, exist_ok=into)
        shutil.copy(source, target)

    def run(self, command: str) -> None:
        if command.startswith("useradd"):
            return
        words = re.sub("^python ", f"{interpreter(self.user)} ", command)
        if self.user is None:
            words = words.replace("-o dpsql -g dpsql", "")
        else:
            words = words.replace("-o dpsql -g dpsql", f"-o {self.user} -g {self.user}")
        subprocess.run(words, shell=True, check=True, stdout=subprocess.DEVNULL)

    def as_user(self, command: list[str], **how: Any) -> subprocess.Popen[str]:
        """A process of the user who is not root."""
        return subprocess.Popen(
            command, text=True, cwd=self.workdir, env=self.environment, user=self.user, group=self.user, **how
        )


def interpreter(user: int | None) -> str:
    """A Python that this user can run: that of the tests may be in a folder of somebody else."""
    for each in (sys.executable, "/usr/bin/python3"):
        try:
            subprocess.run([each, "-c", "import ensurepip, venv"], check=True, user=user, cwd="/", env={})
            return each  # noqa: TRY300 - it is what was tried
        except (OSError, subprocess.SubprocessError):
            pass
    pytest.skip("no Python that another user can run")


@pytest.mark.slow
def test_the_steps_of_the_image_serve_data_that_are_read_only(tmp_path: Path):
    """What is built serves as its CMD says, on a loopback address, by a user who is not root where the tests have the
    right to become one; data and code cannot be written."""
    user = 65_534 if os.geteuid() == 0 else None
    image = Image(tmp_path / "image", user)
    image.root.mkdir()
    for each in (*tmp_path.parents[:2], tmp_path, image.root) if user is not None else ():
        each.chmod(0o755)
    for word, said in steps_of((ROOT / "Dockerfile").read_text()):
        image.do(word, said)
    assert {"COPY", "RUN", "ENV", "USER", "WORKDIR", "ENTRYPOINT", "CMD"} <= set(image.done)
    data, kept = image.root / "data", image.root / "ledger"
    assert kept.stat().st_mode & 0o777 == 0o700
    schema = shop(data, rows=100)
    schema.write_text(schema.read_text().replace("[budget]", f'[budget]\nledger = "{kept}/shop.ledger"'))
    token = token_for(schema, "ann")
    before = {each.name: each.read_bytes() for each in data.iterdir()}
    for each in (*data.iterdir(), data):
        each.chmod(0o555 if each.is_dir() else 0o444)
    for each in kept.iterdir() if user is not None else ():
        os.chown(each, user or 0, user or 0)
    served = ["--host", "0.0.0.0", "--tls-cert", "/tls/cert.pem", "--tls-key", "/tls/key.pem"]
    assert image.command == ["dpsql", "serve", "shop.toml", *served]
    shutil.copytree(ROOT / "tests" / "remote" / "tls", image.root / "tls")
    (image.root / "tls" / "key.pem").chmod(0o644)
    program = shutil.which(image.command[0], path=image.environment["PATH"])
    assert program is not None
    assert program.startswith(str(image.root))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    said = [image.inside(each) for each in image.command[1:]]
    command = [program, *said, "--port", str(port), "--hosts", f"127.0.0.1:{port}", "--grid", "250ms"]
    with image.as_user(command, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        try:
            assert json.loads(first)["address"] == f"https://0.0.0.0:{port}"
            trusted = ssl.create_default_context(cafile=str(ROOT / "tests" / "remote" / "tls" / "cert.pem"))
            with httpx.Client(verify=trusted, base_url=f"https://127.0.0.1:{port}", timeout=60) as client:
                headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "first", "Prefer": "wait=30"}
                asked = {"sql": COUNT, "epsilon": 0.01}
                assert client.post("/v1/queries", headers=headers, json=asked).status_code == 200
                assert client.get("/healthz").json() == {"status": "ok"}
                assert "dpsql" in client.get("/", follow_redirects=True, headers={"Accept": "text/html"}).text
        finally:
            process.terminate()
            process.wait(60)
    assert {each.name: each.read_bytes() for each in data.iterdir()} == before
    code = next((image.root / "opt").rglob("dpsql/__init__.py"))
    for file in (data / "customers.csv", data / "new.csv", code) if user is not None else ():
        tries = [str(image.root / "opt/dpsql/bin/python"), "-c", f"open({str(file)!r}, 'a')"]
        with image.as_user(tries, stderr=subprocess.PIPE) as process:
            assert "Permission denied" in process.communicate()[1], file

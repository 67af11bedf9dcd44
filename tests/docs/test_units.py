"""The units of docs/guides/deploy.md: systemd reads them without a complaint."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs/guides/deploy.md"


def blocks() -> list[str]:
    return re.findall(r"```text\n(.*?)```", GUIDE.read_text(), re.DOTALL)


def server_unit() -> str:
    (unit,) = [block for block in blocks() if block.startswith("[Unit]")]
    return unit


def site_unit() -> str:
    """The server's with the lines that the guide changes."""
    (changes,) = [block for block in blocks() if block.startswith("ExecStart=")]
    kept = [line for line in server_unit().splitlines() if not re.match("ExecStart=|.*Capabilit", line)]
    kept.insert(kept.index("[Service]") + 1, changes.strip())
    return "\n".join(kept)


@pytest.mark.parametrize("unit", [server_unit(), site_unit()], ids=["serve", "join"])
def test_units_are_verified(unit: str, tmp_path: Path) -> None:
    """Its program is not installed where tests run: another one stands in its place."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze")
    path = tmp_path / "secure-kg.service"
    there = re.sub(r"ExecStart=\S+", f"ExecStart={shutil.which('true')}", unit)
    path.write_text(there)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", path], capture_output=True, text=True
    )
    about_it = [line for line in done.stderr.splitlines() if "secure-kg" in line]
    assert (done.returncode, about_it) == (0, []), done.stderr
    path.write_text(path.read_text().replace("RestartSec=5", "RestartSeconds=5"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True)
    assert "RestartSeconds" in done.stderr

"""What is installed: three packages, the console script and the types; the version stands in one place."""

import shutil
import subprocess
import sys
import zipfile
from configparser import ConfigParser
from pathlib import Path

import pytest

import secure_kg

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
PACKAGES = ("launch", "protocols", "secure_kg")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Built from a copy: building leaves files beside the sources."""
    copy, out = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("dist")
    skip = shutil.ignore_patterns("__pycache__")
    for name in (*PACKAGES, "benchmarks", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=skip)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run([*command, "-w", str(out), str(copy)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (file,) = out.glob("*.whl")
    return zipfile.ZipFile(file)


def test_the_wheel_has_every_module_of_three_packages_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    own = {name for name in wheel.namelist() if ".dist-info/" not in name}
    expected = {path.relative_to(ROOT).as_posix() for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    types = {f"{package}/{name}" for package in ("protocols", "secure_kg") for name in ("py.typed", "__init__.pyi")}
    assert own == expected | types


def test_the_wheel_has_the_console_script_and_the_version_of_the_package(wheel: zipfile.ZipFile) -> None:
    (folder,) = {name.split("/")[0] for name in wheel.namelist() if ".dist-info/" in name}
    assert folder == f"secure_kg-{secure_kg.__version__}.dist-info"
    scripts = ConfigParser()
    scripts.read_string(wheel.read(f"{folder}/entry_points.txt").decode())
    assert dict(scripts["console_scripts"]) == {"secure-kg": "launch.cli:main"}

"""The lock files: complete, hashed, in agreement with the project's declarations, and what is installed."""

import hashlib
import importlib
import re
import subprocess
import sys
import tomllib
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
LOCK, CUDA_LOCK, UV = ROOT / "requirements.lock", ROOT / "requirements-cuda.lock", ROOT / ".ci" / "uv.txt"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
NAMED_ONLY = {"torch"}  # pinned by version, not by hash
EXTRAS = ("dev", "mpc", "paillier", "bfv", "sparql", "dp", "parquet", "docs")  # those that `make setup` installs


def entries(path: Path) -> dict[str, tuple[str, list[str]]]:
    """Requirement and hashes per package; a package that is listed twice, or another kind of line, fails."""
    found: dict[str, tuple[str, list[str]]] = {}
    text = re.sub(r" \\\n\s*", " ", path.read_text())
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        requirement, *hashes = line.split(" --hash=")
        name = canonicalize_name(Requirement(requirement).name)
        assert name not in found, name
        found[name] = requirement, hashes
    return found


def version(requirement: str) -> str:
    (pin,) = Requirement(requirement).specifier
    assert pin.operator == "=="
    return pin.version


def applies(requirement: str) -> bool:
    marker: Marker | None = Requirement(requirement).marker
    return marker is None or marker.evaluate()


def steps(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    return importlib.import_module("installed")


@pytest.fixture(scope="module")
def locked() -> dict[str, str]:
    return {name: version(requirement) for name, (requirement, _) in entries(LOCK).items()}


@pytest.fixture
def from_this_lock() -> None:
    stamp = Path(sys.prefix, ".installed")
    if not stamp.is_file() or hashlib.sha256(LOCK.read_bytes()).hexdigest() not in stamp.read_text():
        pytest.skip("this environment was not installed by `make setup` from this lock")


@pytest.mark.parametrize("path", [LOCK, CUDA_LOCK, UV], ids=lambda path: path.name)
def test_every_package_has_one_version_and_hashes(path: Path) -> None:
    listed = entries(path)
    assert listed
    for name, (requirement, hashes) in listed.items():
        assert version(requirement), name
        assert hashes, name
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", it) for it in hashes), name


@pytest.mark.parametrize("path", [LOCK, CUDA_LOCK, UV], ids=lambda path: path.name)
def test_a_lock_names_no_place_to_download_from(path: Path) -> None:
    assert "://" not in path.read_text()
    assert not re.search(r"^\s*(-i|-f|--(?!hash=))", path.read_text(), re.MULTILINE)


def test_what_the_project_declares_is_locked_in_an_accepted_version(locked: dict[str, str]) -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    declared = [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]]
    for requirement in map(Requirement, declared + [line for extra in EXTRAS for line in extras[extra]]):
        name = canonicalize_name(requirement.name)
        if name not in NAMED_ONLY:
            assert requirement.specifier.contains(locked[name]), name


def test_setup_installs_the_extras_that_are_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    steps(monkeypatch)
    assert set(importlib.import_module("lock").EXTRAS) == set(EXTRAS)


def test_constraints_and_lock_agree(locked: dict[str, str]) -> None:
    lines = (line.partition("#")[0].strip() for line in (ROOT / "constraints.txt").read_text().splitlines())
    pins = {canonicalize_name(Requirement(line).name): version(line) for line in lines if line}
    assert pins.keys() >= NAMED_ONLY
    assert pins.keys() - locked.keys() == NAMED_ONLY
    assert {name: locked[name] for name in pins.keys() & locked.keys()} == {
        name: pin for name, pin in pins.items() if name in locked
    }


def test_setup_installs_by_hash_and_without_dependencies(tmp_path: Path) -> None:
    done = subprocess.run(
        ["make", "--dry-run", "setup", f"VENV={tmp_path}/venv"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    installs = [line.split(" install ")[1] for line in done.stdout.splitlines() if " install " in line]
    assert all("--no-deps" in line for line in installs)
    by_hash = [line for line in installs if "--require-hashes" in line]
    assert [re.findall(r"-r (\S+?);?(?: |$)", line) for line in by_hash] == [[LOCK.name], [CUDA_LOCK.name]]
    torch, project = (line for line in installs if line not in by_hash)
    assert torch.endswith("-c constraints.txt torch")
    assert project.endswith("--no-build-isolation -e .")


def test_nothing_is_locked_that_nothing_needs(locked: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Follows the metadata of what is installed, from the project, its tools, its score backends and CrypTen."""
    required = steps(monkeypatch).required
    here = {canonicalize_name(it.name) for it in distributions()}
    waiting = [("secure-kg", ("", *EXTRAS)), *((name, ("",)) for name in ("crypten", "pip", "setuptools"))]
    seen = set()
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in seen or name not in here:
            continue
        seen.add((name, extras))
        waiting += [(canonicalize_name(it.name), ("", *sorted(it.extras))) for it in required(name, extras)]
    needed = {name for name, _ in seen}
    assert {name for name, (line, _) in entries(LOCK).items() if applies(line)} <= needed


@pytest.mark.long
def test_what_is_left_out_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the packages happen to be installed: importing them fails in this process."""
    steps(monkeypatch)
    left_out = [name.replace("-", "_") for name in importlib.import_module("lock").NOT_INSTALLED if name != "sklearn"]
    code = (
        f"import sys; sys.path.insert(0, '.ci'); sys.path.insert(0, '.')\nfor name in {left_out!r}:\n"
        "    sys.modules[name] = None\n"
        "import installed\ninstalled.import_used()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("from_this_lock")
def test_what_is_installed_is_what_is_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    installed: dict[str, str] = {canonicalize_name(it.name): it.version for it in distributions()}
    files = [LOCK, CUDA_LOCK] if steps(monkeypatch).needs_cuda() else [LOCK]
    expected = {
        name: version(line) for path in files for name, (line, _) in entries(path).items() if applies(line)
    }
    assert {name: installed.get(name) for name in expected} == expected
    assert steps(monkeypatch).unmet() == []


@pytest.mark.usefixtures("from_this_lock")
def test_cryptens_benchmarks_are_not_installed(tmp_path: Path) -> None:
    """The project's own are not either: outside the project's folder nothing has that name."""
    code = "import importlib.util as util; found = util.find_spec('benchmarks'); print(found and found.origin)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "site-packages" not in done.stdout

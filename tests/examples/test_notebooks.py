"""Notebooks: their cells run in order, and what they store is what comes out."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.long

NOTEBOOKS = Path(__file__).parents[2] / "examples" / "notebooks"


@pytest.fixture(scope="module")
def build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebooks_build", NOTEBOOKS / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def stored(name: str) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads((NOTEBOOKS / name).read_text("utf-8"))["cells"]
    return cells


def shown(outputs: list[dict[str, Any]]) -> list[Any]:
    return [one.get("text") or one["data"] for one in outputs]


def test_every_script_has_its_notebook(build: ModuleType) -> None:
    scripts = {path.name for path in NOTEBOOKS.glob("*.py")} - {"build.py"}
    assert scripts == set(build.SCRIPTS)
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == {Path(name).stem for name in scripts}


@pytest.mark.parametrize("name", ["first_steps", "what_leaks"])
def test_the_cells_give_what_is_stored(name: str, build: ModuleType) -> None:
    cells, names = stored(f"{name}.ipynb"), dict[str, Any]()
    written = build.cells_of((NOTEBOOKS / f"{name}.py").read_text("utf-8"))
    assert ["".join(cell["source"]) for cell in cells] == [one.source for one in written]
    assert [cell["cell_type"] for cell in cells] == [one.kind for one in written]
    compared = 0
    for cell in cells:
        if cell["cell_type"] == "code":
            outputs = build.run_cell("".join(cell["source"]), names)
            if "varies" in cell["metadata"].get("tags", []):
                forms = [set(one["data"]) for one in outputs if "data" in one]
                assert forms == [set(one["data"]) for one in cell["outputs"] if "data" in one]
            else:
                compared += bool(outputs)
                assert shown(outputs) == shown(cell["outputs"]), cell["source"]
    assert compared > 3


def test_a_changed_output_is_noticed(build: ModuleType) -> None:
    outputs = build.run_cell("print('a')\n1 + 1", {})
    assert shown(outputs) == [["a\n"], {"text/plain": ["2"]}]
    assert shown(outputs) != shown(build.run_cell("print('a')\n1 + 2", {}))


def test_notebooks_are_small() -> None:
    assert all(path.stat().st_size < 60_000 for path in NOTEBOOKS.glob("*.ipynb"))

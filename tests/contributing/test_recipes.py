"""CONTRIBUTING.md: every recipe is carried out on a copy of the project, and what it adds is used."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contributing.recipes import ROOT, copy_of_the_project, recipes, with_entry, with_lines
from tests.contributing.trying import TRIED

RECIPES = recipes()
EDITED = {
    "A sum": {"protocols/registry.py"},
    "An alignment": {"protocols/registry.py"},
    "A learner": {"secure_kg/federation/plan/strategies.py"},
    "A model": {"secure_kg/models/shapes.py"},
    "A transport": set(),
    "A host": {"launch/hosts/registry.py"},
}
"""The files that each recipe changes beside the one it adds."""
ONE_ENTRY = ("A learner", "A model", "A host")
"""Recipes that beside their file are one entry of one table."""


def in_copy(project: Path, *command: str) -> subprocess.CompletedProcess[str]:
    places = os.pathsep.join([str(project), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": places, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *command], cwd=project, env=environment, capture_output=True, text=True, check=False
    )


def test_there_is_a_recipe_for_everything_and_a_use_of_every_recipe() -> None:
    assert RECIPES.keys() == EDITED.keys() == TRIED.keys()


@pytest.mark.parametrize("heading", EDITED)
def test_a_recipe_touches_one_new_file_and_the_places_that_are_expected(heading: str) -> None:
    steps = RECIPES[heading]
    assert [step.new for step in steps].count(True) == 1
    assert {step.path for step in steps if not step.new} == EDITED[heading]
    assert all(len(step.code.splitlines()) <= 45 for step in steps)
    if heading in ONE_ENTRY:
        (entry,) = (step for step in steps if not step.new)
        assert entry.table is not None


@pytest.mark.long
@pytest.mark.parametrize(
    "headings",
    [
        pytest.param(list(EDITED), id="all together"),
        *(pytest.param([heading], marks=pytest.mark.slow, id=heading) for heading in EDITED),
    ],
)
def test_what_recipes_add_works(headings: list[str], tmp_path: Path) -> None:
    """In one process for all of them: most of the time of each is its start."""
    project = copy_of_the_project(tmp_path / "project")
    for heading in headings:
        for step in RECIPES[heading]:
            step.carry_out(project)
    done = in_copy(project, "-m", "tests.contributing.trying", str(tmp_path), *headings)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.long
def test_all_recipes_together_keep_the_rules_of_the_project(tmp_path: Path) -> None:
    project = copy_of_the_project(tmp_path)
    (project / "tests").mkdir()
    (project / "benchmarks").mkdir()
    (project / "benchmarks/__init__.py").touch()
    for name in ("test_dependency_direction.py", "test_sizes.py"):
        (project / "tests" / name).write_text((ROOT / "tests" / name).read_text(encoding="utf-8"), encoding="utf-8")
    for steps in RECIPES.values():
        for step in steps:
            step.carry_out(project)
    added = [step.path for steps in RECIPES.values() for step in steps if step.new]
    checked = in_copy(project, "-m", "ruff", "check", "--no-cache", *added)
    assert checked.returncode == 0, checked.stdout
    rules = "order or one_way or randomness or formats or (short and not test_test) or parameters or server_loads"
    kept = in_copy(project, "-m", "pytest", "-p", "no:cacheprovider", "-k", rules, "tests")
    assert kept.returncode == 0, kept.stdout[-3000:]


def test_entries_and_lines_go_where_they_belong() -> None:
    assert with_entry('A = ("x", "y")\n', "A", '"z"') == 'A = ("x", "y", "z",\n)\n'
    assert with_entry("B: dict = {\n    1: 2,\n}\n", "B", "3: 4") == "B: dict = {\n    1: 2,3: 4,\n}\n"
    assert with_entry("C = {k: k for k in (1,)}\n", "C", "2") == "C = {k: k for k in (1,2,\n)}\n"
    assert with_lines("import a\n\nx = 1\n", "import b\n\ny = 2\n") == "import a\nimport b\n\nx = 1\ny = 2\n"

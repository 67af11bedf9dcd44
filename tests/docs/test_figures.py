"""The picture of a session: lines as commands say them, drawn without anything from elsewhere."""

import importlib.util
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "docs/figures"


@pytest.fixture(scope="module")
def session() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_session", FIGURES / "make_session.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def texts(drawing: str) -> list[str]:
    root = ElementTree.fromstring(drawing)
    return [line.text or "" for line in root.iter("{http://www.w3.org/2000/svg}text")]


def test_lines_are_picked_as_they_are_with_marks_where_some_are_missing(session: ModuleType) -> None:
    said = ["first", "findings: 0 high", "between", "last " + "word " * 30]
    lines = session.shown("audit RUN", said, ("^findings", "^last"))
    assert lines[:5] == ["$ secure-kg audit RUN", "⋮", "findings: 0 high", "⋮", ("last " + "word " * 20).strip()]
    assert all(len(line) <= session.COLUMNS for line in lines)
    with pytest.raises(SystemExit, match="no line for"):
        session.shown("audit RUN", said, ("^nothing",))


def test_a_drawing_has_every_line_and_escapes_it(session: ModuleType) -> None:
    assert texts(session.drawing(["$ a < b & c", "", "│ all │"])) == ["$ a < b & c", "│ all │"]


def test_the_picture_in_the_readme_is_one_of_this_session(session: ModuleType) -> None:
    lines = texts((FIGURES / "session.svg").read_text(encoding="utf-8"))
    assert [line for line in lines if line.startswith("$ ")] == [
        f"$ secure-kg {command}" for command, _ in session.SESSION
    ]
    assert "findings: 0 high, 0 medium, 0 low, 2 info" in lines
    assert "docs/figures/session.svg" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_session_can_be_drawn_again(session: ModuleType, tmp_path: Path) -> None:
    session.main(tmp_path / "again.svg")
    lines = texts((tmp_path / "again.svg").read_text(encoding="utf-8"))
    assert "│ this run │ fede     │ plain  │ 3       │     10 │ 0.2680 │ 0.7569  │ 4,193 │" in lines

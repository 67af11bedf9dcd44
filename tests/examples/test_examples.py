"""Examples run as they are written, and leave their pictures."""

import re
import runpy
import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytestmark = pytest.mark.long

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = {
    "first_secure_sum.py": [],
    "two_hospitals.py": ["3"],
    "what_the_server_sees.py": ["2"],
    "ask_three_graphs.py": ["1"],
    "privacy_budget.py": ["3"],
}
"""Arguments for a short run by the same code."""
LINES = 50
SVG = "{http://www.w3.org/2000/svg}svg"


def run(name: str, arguments: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What a copy of the script prints; its picture goes beside the copy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(shutil.copy(EXAMPLES / name, folder)), run_name="__main__")
    out = capsys.readouterr().out
    picture = re.search(r"^picture: (.*)$", out, re.MULTILINE)
    assert picture is not None, out
    assert Path(picture[1]) == folder / "out" / Path(name).with_suffix(".svg")
    assert ElementTree.parse(picture[1]).getroot().tag == SVG
    return out


def test_every_script_is_tried_and_short() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == SMALL.keys()
    assert [path.name for path in EXAMPLES.glob("*.py") if len(path.read_text("utf-8").splitlines()) > LINES] == []


def test_a_first_sum_is_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run("first_secure_sum.py", [], tmp_path, capsys)
    found = [re.findall(r"\d+", line) for line in out.splitlines() if line.startswith(("the sum", "as it is"))]
    assert len(found[0]) == 12
    assert found[0] == found[1]
    assert "clinic 3" not in out


def test_of_two_hospitals_each_reads_the_other_and_of_three_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run("two_hospitals.py", SMALL["two_hospitals.py"], tmp_path, capsys)
    assert "north subtracts its own and reads [4.0, 1.0]" in out
    assert "rows kept local: 5 of 18" in out


def test_the_server_sees_rows_in_clear_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run("what_the_server_sees.py", SMALL["what_the_server_sees.py"], tmp_path, capsys)
    high = {name: int(number) for name, number in re.findall(r"^(plain|secure): .*\((\d+) high", out, re.MULTILINE)}
    assert high["plain"] > 0 == high["secure"]
    first, second = re.findall(r"0\.\d{6,}", out.splitlines()[0])
    assert first == second
    assert (tmp_path / "out" / "audit-plain" / "audit.html").is_file()


def test_a_question_is_answered_over_three_graphs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run("ask_three_graphs.py", SMALL["ask_three_graphs.py"], tmp_path, capsys)
    assert "diagnoses: in the graph of client [3]" in out
    assert "treats: in the graph of client [2]" in out
    assert "with the query hidden: True" in out


def test_training_and_counting_are_compared_by_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run("privacy_budget.py", SMALL["privacy_budget.py"], tmp_path, capsys)
    assert len(re.findall(r"^training with noise, epsilon", out, re.MULTILINE)) == 5
    counting = [float(mrr) for mrr in re.findall(r"^counting .* MRR (.*)$", out, re.MULTILINE)]
    assert len(counting) == 5
    assert counting[-1] > 0.07  # of 104 entities, guessing has 0.05


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_script_runs_in_full(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run(name, [], tmp_path, capsys)
    if name == "two_hospitals.py":
        assert re.search(r"^│ +1 │ embolism", out, re.MULTILINE)  # which only the south knows
    if name == "privacy_budget.py":
        training = [float(mrr) for mrr in re.findall(r"^training .* MRR (.*)$", out, re.MULTILINE)]
        assert training[-1] > 0.15 > training[0]


def test_the_page_shows_every_script_notebook_and_picture() -> None:
    page = (EXAMPLES / "README.md").read_text("utf-8")
    pictures = {path.name for path in (EXAMPLES / "pictures").iterdir()}
    assert pictures == {Path(name).with_suffix(".svg").name for name in SMALL}
    linked = re.findall(r"\]\(([\w./-]+)\)", page)
    assert all((EXAMPLES / link).is_file() for link in linked)
    needed = [*SMALL, *(f"pictures/{name}" for name in pictures), "notebooks/first_steps.ipynb"]
    assert set(needed) | {"notebooks/what_leaks.ipynb", "notebooks/build.py"} == set(linked)
    for name in pictures:
        assert ElementTree.parse(EXAMPLES / "pictures" / name).getroot().tag == SVG

"""Guides and README: every command and every line of Python that they show is run, and says what they show."""

from pathlib import Path
from typing import Any

import pytest

from secure_kg.data.sources import PooledSource, load_source
from tests.docs.snippets import ROOT, Snippet, blocks, run, run_python, run_shell, snippets

GUIDES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/guides").glob("*.md"))
PAGES = ["README.md", *GUIDES, "docs/api/simulation.md"]
NEEDS_JOBS = {"docs/guides/read-an-audit.md", "docs/guides/deploy.md", "docs/guides/across-organisations.md"}
"""Documents whose Python looks at what jobs have left, or that have none."""
TRAINS = {"docs/guides/journey.md"}
BY_ITSELF = [
    pytest.param(page, marks=pytest.mark.long if page in TRAINS else ())
    for page in PAGES
    if page not in {*NEEDS_JOBS, "README.md"}
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a file of one's own, as the README has it."""
    source = load_source("nations")
    assert isinstance(source, PooledSource)
    names, relations = ("HEAD", *source.entities[1:]), ("RELATION", *source.relations[1:])
    lines = [f"{names[h]}\t{relations[r]}\t{names[t]}\n" for h, r, t in source.triples]
    (tmp_path / "mine.tsv").write_text("".join(lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_read_and_few_are_left_out(page: str) -> None:
    found = snippets(page)
    assert len(found) == blocks(page)
    assert found
    assert sum(one.reason is not None for one in found) <= 1


@pytest.mark.parametrize("page", BY_ITSELF)
def test_the_python_of_a_page_says_what_the_page_shows(page: str, folder: Path) -> None:
    names: dict[str, Any] = {}
    shown = [one for one in snippets(page) if one.kind == "python"]
    assert shown
    for one in shown:
        run(one, folder, names)


def test_a_federation_is_set_up_as_its_guide_says(folder: Path) -> None:
    page = "docs/guides/across-organisations.md"
    before_running = (ROOT / page).read_text(encoding="utf-8").partition("\n## Run\n")[0]
    steps = [one for one in snippets(page) if one.code in before_running]
    run_shell("\n".join(one.code for one in steps), folder)
    checked = (folder / "south/site/record.json").read_text(encoding="utf-8")
    assert '"version": 2' in checked
    assert len(steps) == 4


@pytest.mark.mpi
def test_a_run_on_ones_own_file_is_one_command(folder: Path) -> None:
    first = next(one for one in snippets("README.md") if "mine.tsv" in one.code)
    run(first, folder, {})
    assert (folder / "runs/mine/summary.json").is_file()


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.timeout(900)  # several jobs one after the other
@pytest.mark.parametrize("page", PAGES)
def test_a_page_from_its_first_block_to_its_last(page: str, folder: Path) -> None:
    names: dict[str, Any] = {}
    for one in snippets(page):
        run(one, folder, names)


def test_a_block_that_fails_or_says_something_else_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run(Snippet("python", "print(1)\n", "2\n", None), tmp_path, {})
    with pytest.raises(ZeroDivisionError):
        run_python("1 / 0", {})
    with pytest.raises(AssertionError, match="false"):
        run_shell("false\ntrue", tmp_path)
    assert run_shell("echo a", tmp_path) == "a\n"

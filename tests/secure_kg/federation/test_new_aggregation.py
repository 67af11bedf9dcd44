"""Adding a sum: one file and one line. A toy runs a whole federation, and is announced in its own words everywhere."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from launch.options import parse
from launch.results import show_results
from protocols.foundation.errors import UnknownProtocol
from secure_kg.audit.audit import Audit
from secure_kg.federation.plan.disclosed import Disclosed
from secure_kg.federation.plan.recorded import RecordedSettings
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.report.audit_page import audit_page
from secure_kg.report.learned import adversary, privacy
from secure_kg.report.page import run_report
from secure_kg.runs.run_folder import RunFolder
from tests.support.audited_runs import audited, ids, recorded_run
from tests.support.federation_in_threads import small_config
from tests.support.toy_aggregation import registered

ROOT = Path(__file__).parents[3]
NOT_CLAIMED = re.compile("(?i)secret|secure|private")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    recorded_run(folder / "plain", clients=3, aggregation="plain", alignment="plain")
    with registered():
        return recorded_run(folder / "toy", clients=3, aggregation="megaphone", alignment="plain")


@pytest.fixture
def toy_run(finished: Path) -> Iterator[Path]:
    with registered():
        yield finished


def test_it_adds_up_as_its_twin_does(toy_run: Path) -> None:
    toy, plain = (RunFolder(toy_run.parent / name).summary() for name in ("toy", "plain"))
    assert toy is not None
    assert plain is not None
    assert toy.settings.aggregation == "megaphone"
    assert (toy.figures, toy.valid_mrr, toy.bytes_up) == (plain.figures, plain.valid_mrr, plain.bytes_up)


def test_the_last_lines_of_the_run_are_its_own(toy_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = RunFolder(toy_run).summary()
    assert summary is not None
    show_results(summary, toy_run)
    told = capsys.readouterr().out
    assert "aggregation was by megaphone: the server heard every client's relation rows across the yard" in told
    closing = [line for line in told.splitlines() if "python -m" not in line and "run folder" not in line]
    assert not NOT_CLAIMED.search("\n".join(closing))


def test_the_report_says_what_it_discloses(toy_run: Path) -> None:
    summary = RunFolder(toy_run).summary()
    assert summary is not None
    page = run_report(summary, [], "")
    for words in ("all that was shouted", "the mean rows, from the echo", "every shouted number", "Against the deaf"):
        assert words in page
    assert not NOT_CLAIMED.search(str(privacy(summary)) + adversary(summary.settings, 1))
    assert not re.search("(?i)secret|secure", page)


def test_the_audit_says_what_it_discloses(toy_run: Path) -> None:
    found: Audit = audited(toy_run)
    record = found.record()
    assert "values of relation rows: all that was shouted" in record.may_learn
    assert "participation in sums: who shouted; who took part" in record.may_learn
    assert not NOT_CLAIMED.search("\n".join(record.may_learn))
    page = audit_page(record)
    assert "values of relation rows: all that was shouted" in page
    assert "megaphone sums, plain alignment" in page
    assert ids(found, "high") >= {"clear-rows", "clear-names"}  # and nothing that was not declared
    assert "undeclared-message" not in ids(found)


def test_the_command_line_offers_it(capsys: pytest.CaptureFixture[str]) -> None:
    with registered():
        assert parse(["--aggregation", "megaphone"], "job", "", "").config.aggregation == "megaphone"
        with pytest.raises(SystemExit):
            parse(["--help"], "job", "", "")
        told = " ".join(capsys.readouterr().out.split())
        assert "secagg|secret|plain|megaphone" in told
        assert "megaphone: clients shout their vectors across the yard" in told
    with pytest.raises(UserError, match="--aggregation"):
        parse(["--aggregation", "megaphone"], "job", "", "")


def test_what_it_cannot_do_is_refused() -> None:
    with registered(), pytest.raises(UserError, match="needs --aggregation secagg or secret: the megaphone sum"):
        small_config(aggregation="megaphone", adversary="active", keys="keys")


# --- a name that nobody has registered --------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["aggregation", "alignment"])
def test_an_unknown_name_raises_wherever_it_comes_from(option: str) -> None:
    with pytest.raises(UserError, match=rf"--{option} must be one of \w+, .*plain"):
        RunConfig(**{option: "megaphone"})
    with pytest.raises(UserError, match=rf"--{option} must be one of"):
        RunConfig.from_toml(RunConfig().to_toml().replace(f'{option} = "', f'{option} = "mega'), "config.toml")
    with pytest.raises(UserError, match=option):
        parse([f"--{option}", "megaphone"], "job", "", "")
    settings = {"strategy": "fedr", "aggregation": "plain", "alignment": "plain", "reveal_names": False}
    with pytest.raises(UnknownProtocol, match=f"unknown {option} 'megaphone': there are"):
        Disclosed.of_summary(RecordedSettings.of({**settings, "min_holders": 2, option: "megaphone"}))


def test_reports_and_last_lines_of_an_unknown_aggregation_are_refused(toy_run: Path) -> None:
    summary = RunFolder(toy_run).summary()
    assert summary is not None
    summary.config["aggregation"] = "semaphore"
    for tell in (lambda: run_report(summary, [], ""), lambda: show_results(summary, toy_run)):
        with pytest.raises(UnknownProtocol, match="unknown aggregation 'semaphore': there are secagg, secret, plain"):
            tell()


# --- no branch on a name ----------------------------------------------------------------------------------------------

CHOSEN = {"aggregation", "alignment"}


def compared_with_names(source: str) -> list[str]:
    """Comparisons and matches of a chosen protocol with a word."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare():
                sides = [node.left, *node.comparators]
            case ast.Match():
                sides = [node.subject, *(ast.Constant("") for _ in node.cases)]
            case ast.Subscript(value=ast.Dict()):
                sides = [node.slice, ast.Constant("")]
            case _:
                continue
        asked = any(name in ast.unparse(side) for side in sides for name in CHOSEN)
        words = any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in sides)
        if asked and words and "isinstance" not in ast.unparse(node):
            found.append(ast.unparse(node))
    return found


def test_nothing_branches_on_the_name_of_a_protocol() -> None:
    sources = [path for package in ("secure_kg", "launch", "benchmarks") for path in (ROOT / package).rglob("*.py")]
    found = {str(path): said for path in sources if (said := compared_with_names(path.read_text(encoding="utf-8")))}
    assert len(sources) > 100
    assert found == {}


@pytest.mark.parametrize(
    "source",
    [
        'config.aggregation == "plain"',
        '"secret" != self._config.aggregation',
        'config["alignment"] == "psu"',
        'match config.aggregation:\n    case "secagg":\n        pass\n    case _:\n        pass',
        '{"plain": 1, "secagg": 2}[config["aggregation"]]',
    ],
)
def test_a_branch_on_a_name_is_noticed(source: str) -> None:
    assert compared_with_names(source)

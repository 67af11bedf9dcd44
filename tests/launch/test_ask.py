"""The command `ask` over a small run that was trained for it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import launch.audit
from launch import ask, cli, fedcqa
from launch.ask_report import write_page
from protocols.foundation.identifiers import PartyId
from secure_kg.queries.language.reading import read_questions
from secure_kg.queries.retrieval.members import AskersView, load_member
from secure_kg.queries.retrieval.over_run import AskSettings, RunAsked
from secure_kg.queries.retrieval.parts import Session
from secure_kg.queries.retrieval.rules import Exact
from tests.support.jobs_in_threads import run_in_threads
from tests.support.pages import Page, outward

TINY = [
    *("--dataset", "nations", "--dim", "8", "--batch-size", "8", "--local-steps", "1", "--eval-queries", "2"),
    *("--test-types", "1p", "--eval-every", "2", "--checkpoint-every", "2", "--rounds", "2"),
]
QUESTION = '?x : exports3(?x, ?y) & embassy("usa", ?y) | conferences(?x, "china")'
Asked = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    ended = run_in_threads(4, *TINY, "--out", "run", cwd=folder, launcher=fedcqa.main)
    assert ended.code == 0, ended.errors
    return folder / "run"


@pytest.fixture
def asked(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Asked:
    def asked(*options: str) -> dict[str, Any]:
        path = tmp_path / "answers.json"
        assert ask.main([str(run), "--query", QUESTION, "--json", str(path), *options]) == 0, capsys.readouterr().err
        assert path.stat().st_mode & 0o077 == 0, "questions and answers are the asker's"
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    return asked


def test_every_backend_gives_the_same_answers_with_names(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    expected: list[tuple[int, str]] | None = None
    for options in (["topk"], ["masked"], ["plain"], ["topk", "--hide-query"]):
        told = asked("--scores", *options, "--min-holders", "1", "--name-policy", "all")
        (question,) = told["questions"]
        found = [(answer["position"], answer["name"]) for answer in question["answers"]]
        assert len(found) == 10
        assert expected in (None, found)
        assert (question["answers"][0]["mean"] is None) == (options[0] == "topk")
        sent = {step["kind"]: step["expected_bytes_sent"] for step in question["steps"]}
        assert sent["entities"]["asker"] > sent["names"]["asker"] > 0
        assert sent.get("scores", sent.get("hidden scores")) is None
        expected = found
    shown = capsys.readouterr().out
    assert "question: ?x : " in shown
    assert "the server learned of queries: how many steps a question takes" in shown
    assert "mean score" in shown
    assert found[0][1] in shown


def test_what_was_not_asked_nobody_has_learned(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask.main([str(run), "--query", '?x : !exports3(?x, "usa")']) == 2  # gqe has no negation
    told = capsys.readouterr()
    assert "no answer: " in told.out
    assert "no step was announced: nobody learned anything" in told.out
    assert "learned of queries" not in told.out
    assert ask.main([str(run), "--query", '?x : exports3(?x, "nowhere")']) == 2
    told = capsys.readouterr()
    assert "the server learned of queries: " in told.out
    assert "other clients learned of queries: " in told.out
    assert "answers: its own" not in told.out, "it ended before anything was scored"


def test_answers_are_shown_as_they_come_and_an_interruption_is_one_line(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "questions").write_text(f"{QUESTION}\n{QUESTION}\n")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("launch.ask._told", interrupted)
    assert ask.main([str(run), "--file", str(tmp_path / "questions")]) == 130
    told = capsys.readouterr()
    assert told.out.count("question: ") == 2
    assert told.err == "error: interrupted; questions above have their answers\n"


def test_a_rule_about_a_relation_of_nobody_is_said(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask.main([str(run), "--query", QUESTION, "--no-atoms", "exprots"]) == 0
    assert 'warning: no client has a relation "exprots"' in capsys.readouterr().out
    assert ask.main([str(run), "--query", QUESTION, "--allow-exact"]) == 2
    assert "--allow-exact goes with --exact" in capsys.readouterr().err


def test_a_record_is_audited_and_not_written_over(asked: Asked, run: Path, tmp_path: Path) -> None:
    record = tmp_path / "record"
    asked("--record", str(record), "--client", "2")
    assert launch.audit.main([str(record), "--out", str(tmp_path / "audit")]) == 0
    assert ask.main([str(run), "--query", QUESTION, "--record", str(record)]) == 2


def test_a_file_of_questions_with_one_that_nobody_can_answer(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "questions.txt"
    path.write_text('first = ?x : embassy(?x, "usa")\nsecond = ?x : embasy(?x, "usa")\n')
    page = tmp_path / "new" / "page.html"
    assert cli.main(["ask", str(run), "--file", str(path), "--json", "-", "--report", str(page)]) == 2
    told = capsys.readouterr()
    first, second = json.loads(told.out)["questions"]
    assert (first["name"], len(first["answers"]), second["answers"]) == ("first", 10, [])
    assert 'nobody knows, or tells of, the relation "embasy"' in second["problem"]
    assert any("unknown relation" in line for line in second["warnings"])
    (line,) = told.err.splitlines()
    assert "embasy" in line
    shown = Page(page.read_text())
    assert outward(shown) == []
    assert (page.stat().st_mode & 0o77, len(shown.all("svg"))) == (0, 2)
    for words in ("1 of 2", "client 1, the asker", first["answers"][0]["name"], second["problem"], " of 1,000"):
        assert words in shown.text


def test_where_all_clients_are_needed_no_sum_has_to_bear_dropouts(run: Path) -> None:
    """Else small runs could not be asked at all: of three scorers too few would be left."""
    declared = RunAsked(run, AskSettings(scores="masked")).model.dropout
    assert declared == RunAsked(run, AskSettings()).config.threat_model.dropout > 0
    for settings in (AskSettings(), AskSettings(scores="masked", exact=Exact.BESIDE)):
        assert RunAsked(run, settings).model.dropout == 0


def test_a_session_that_ends_before_its_time_is_on_the_page(run: Path, tmp_path: Path) -> None:
    settings, session = AskSettings(), Session(problems={PartyId(1): ValueError("a link broke")})
    questions = read_questions('first = ?x : embassy(?x, "usa")\nsecond = ?x : embassy("usa", ?x)')
    asked = RunAsked(run, settings)
    view = AskersView.of(asked, {asked.asker: load_member(asked, asked.asker)})
    write_page(tmp_path / "page.html", view, settings, session, questions)
    shown = Page((tmp_path / "page.html").read_text()).text
    assert "came to nothing: a link broke" in shown
    assert "was not asked" in shown


def test_a_question_in_sparql(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rdflib")
    path = tmp_path / "question.txt"
    path.write_text('SELECT ?x WHERE { ?x <embassy> "usa" }')
    assert ask.main([str(run), "--sparql", str(path), "--top-k", "3"]) == 0
    assert 'question: ?x : embassy(?x, "usa")' in capsys.readouterr().out


def test_budgets_last(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    client = run / "clients" / "3"
    assert ask.main([str(run), "--query", '?x : embassy("china", ?x)']) == 0
    assert (client / "atoms.jsonl").stat().st_mode & 0o77 == 0
    assert ask.main([str(run), "--query", '?x : embassy("india", ?x)', "--atom-budget", "1"]) == 2
    assert "go beyond the budget of 1" in capsys.readouterr().err


def test_stored_answers_beside_predicted_ones_and_alone(
    asked: Asked, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    negated, path = '?x : embassy(?x, "usa") & !embassy(?x, "uk")', tmp_path / "only.json"
    question = ["--query", '?x : embassy(?x, "usa")', "--json", str(path), "--name-policy", "all", "--top-k", "3"]
    found = {}
    every_part = ["--allow-exact", "--exact-facts", "all"]
    for name, rules in {"all": ["--allow-exact"], "none": [], "parts": every_part}.items():
        assert ask.main([str(run), *question, "--exact", *rules]) == 0
        (told,) = json.loads(path.read_text())["questions"]
        found[name] = set(told["stored"]["positions"])
        assert told["stored"]["count"] == len(found[name])
        assert all(answer["stored"] == (answer["position"] in found[name]) for answer in told["answers"])
        assert len(told["stored"]["answers"]) == min(3, len(found[name]))
    assert found["none"] < found["all"] <= found["parts"]
    shown = capsys.readouterr().out
    assert "of which 3 are shown" in shown
    assert "│ stored" in shown
    assert shown.count("warning: no client tells others of stored facts; --allow-exact lets them") == 1
    assert ask.main([str(run), "--query", negated, "--exact-only", "--allow-exact", "embassy", "--json", "-"]) == 0
    only = json.loads(capsys.readouterr().out)
    (told,) = only["questions"]
    assert (only["exact"], told["answers"], "stored facts" in only["learned"]["the asker"]) == ("only", [], True)
    assert set(told["stored"]["positions"]) < found["all"]
    assert (run / "clients" / "2" / "exact.jsonl").stat().st_mode & 0o77 == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--query", QUESTION, "--exact-only"], "goes through a variable in between"),
        (["--query", QUESTION, "--exact-only", "--exact"], "not allowed with argument"),
        (["--query", QUESTION, "--exact-only", "--hide-query"], "--exact-only has none"),
        (["--query", '?x : embassy(?x, "usa")', "--exact", "--exact-budget", "0"], "beyond the budget of 0"),
        (["--query", "?x : a(?x"], "line 1, column"),
        (["--file", "nowhere.txt"], "nowhere.txt"),
        ([], "missing: one of --query, --file, --sparql"),
        (["--query", QUESTION, "--client", "9"], "clients 1 to 3"),
        (["--query", QUESTION, "--scores", "masked", "--hide-query"], "--hide-query is for --scores topk"),
        (["--query", QUESTION, "--allow-extraction"], "opens no means"),
        (["--query", QUESTION, "--min-holders", "3"], "2 clients besides the asker"),
        (["--query", QUESTION, "--top-k", "0"], "--top-k"),
        (["--query", QUESTION, "--report", "/proc/page.html"], "/proc/page.html: cannot be written"),
        (["--query", QUESTION, "--top-k", "5000"], "1000 answers at most"),
        (["--query", '?x : embassy(?x, "usa") & !embassy(?x, "uk")'], "no definition of a negation"),
    ],
)
def test_a_mistake_is_one_line(run: Path, options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask.main([str(run), *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_runs_that_have_nothing_to_ask(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = (run / "config.toml").read_text()
    for strategy, words in (("fedcqa", "has not come to its end"), ("fedcqa-local", "no entities in common")):
        folder = tmp_path / strategy
        folder.mkdir()
        (folder / "config.toml").write_text(config.replace('"fedcqa"', f'"{strategy}"'))
        if strategy != "fedcqa":
            (folder / "summary.json").write_text((run / "summary.json").read_text())
        assert ask.main([str(folder), "--query", QUESTION]) == 2
        assert words in capsys.readouterr().err
    assert ask.main([str(tmp_path), "--query", QUESTION]) == 2
    assert "no run folder" in capsys.readouterr().err

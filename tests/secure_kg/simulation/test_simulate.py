"""Simulated runs: the result of mpirun to the last bit, errors in the caller's words, and nothing left behind."""

import doctest
import importlib
import os
import re
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

import secure_kg
from launch import entire, fedcqa, fedr_secagg
from secure_kg import SimulatedRun, UserError, load_run, simulate
from secure_kg.federation.server.server import FederationServer
from secure_kg.foundation.errors import DataError
from secure_kg.report.picture import Picture
from secure_kg.runs.run_folder import RunFolder
from secure_kg.simulation.keywords import POOLED_DEFAULTS, QUERY_DEFAULTS, in_keywords, settings_of
from tests.support.jobs_in_threads import run_in_threads
from tests.support.mpi_jobs import run_job

TINY: dict[str, Any] = {"rounds": 4, "dim": 8, "eval_every": 2}
PAIRS = [(f"a{one}", "knows", f"a{two}") for one in range(6) for two in range(6) if one != two]
OTHERS = [(f"a{one}", "likes", f"a{(one * 2 + 1) % 7}") for one in range(7)]


@pytest.fixture(scope="module")
def result() -> SimulatedRun:
    return simulate("nations", clients=3, **TINY)


@pytest.fixture(scope="module")
def recorded() -> SimulatedRun:
    return simulate("nations", clients=3, strategy="fede", transcript=True, **TINY)


def test_the_examples_in_the_docstring_run() -> None:
    found = doctest.testmod(importlib.import_module("secure_kg.simulation.simulate"))
    assert (found.failed, found.attempted > 5) == (0, True)


@pytest.mark.slow  # in `make test` the commands in threads give the same
@pytest.mark.mpi
def test_mpirun_gives_the_same_to_the_last_bit(result: SimulatedRun, tmp_path: Path) -> None:
    options = ["--dataset", "nations", "--rounds", "4", "--dim", "8", "--eval-every", "2", "--out", "run"]
    assert run_job(4, *options, cwd=tmp_path).code == 0
    summary = RunFolder(tmp_path / "run").summary()
    assert summary is not None
    assert result.metrics == summary.figures
    assert [one.figures for one in result.summary.clients] == [one.figures for one in summary.clients]


@pytest.mark.parametrize(
    ("settings", "options", "launcher"),
    [
        ({"strategy": "fede", "aggregation": "secret"}, ["--strategy", "fede", "--aggregation", "secret"], fedr_secagg),
        pytest.param(
            {"strategy": "all-rows", "dp": "sgd", "epsilon": 8, "delta": 1e-5, "public_evaluation": True},
            ["--strategy", "all-rows", "--dp", "sgd", "--epsilon", "8", "--delta", "1e-5", "--public-evaluation"],
            fedr_secagg,
            marks=pytest.mark.slow,
        ),
        pytest.param({"strategy": "entire"}, [], entire, marks=pytest.mark.slow),
        pytest.param({"strategy": "fedcqa"}, [], fedcqa, marks=pytest.mark.slow),
    ],
)
def test_the_same_settings_are_meant_as_by_the_commands(
    settings: dict[str, Any],
    options: list[str],
    launcher: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = simulate("nations", clients=3, **TINY, **settings)
    typed = ["--dataset", "nations", "--rounds", "4", "--dim", "8", "--eval-every", "2", "--out", "run", *options]
    if launcher is entire:
        monkeypatch.chdir(tmp_path)
        assert entire.main(["-n", "4", *typed]) == 0
    else:
        assert run_in_threads(4, *typed, cwd=tmp_path, launcher=launcher.main).code == 0
    other = load_run(tmp_path / "run")
    assert other.settings == done.run.settings
    if settings.get("dp") is None:  # else there is noise
        assert other.result().metrics == done.metrics


def test_defaults_are_those_of_the_launchers() -> None:
    assert dict(fedcqa.LAUNCHER.defaults) == {"strategy": "fedcqa", **QUERY_DEFAULTS}
    assert dict(entire.LAUNCHER.defaults) == {"strategy": "entire", **POOLED_DEFAULTS}
    assert dict(fedcqa.CENTRAL.defaults) == {"strategy": "fedcqa-central", **QUERY_DEFAULTS, **POOLED_DEFAULTS}


def test_a_result_is_shown_as_text_and_as_markup(result: SimulatedRun) -> None:
    text, page = repr(result), result._repr_html_()
    assert "FedR on nations by triples, TransE, 3 clients, secagg sums" in text
    for words in ("client 3", f"{result.metrics['mrr']:.4f}"):
        assert words in text
        assert words in page
    assert [number for number, _ in result.curve] == [2, 4]
    assert result.bytes.up == sum(result.bytes.up_by_client.values()) > 0
    assert [one.server for one in result.disclosures][:2] == ["their sums only, over the survivors", "nothing"]
    assert "the server learns" in repr(result.disclosures)
    assert "<table" in result.disclosures._repr_html_()


def test_a_picture_is_an_svg_by_itself(result: SimulatedRun, tmp_path: Path) -> None:
    drawn = result.plot()
    assert isinstance(drawn, Picture)
    assert drawn.save(tmp_path / "new" / "plot.svg").read_text("utf-8") == drawn._repr_svg_()
    assert drawn.svg.startswith("<svg ")
    assert not re.search(r"(href|src)='(?!data:)", drawn.svg)
    assert f"test MRR {result.metrics['mrr']:.4f}" in drawn.svg
    with pytest.raises(UserError, match=r"must end in \.svg"):
        drawn.save(tmp_path / "plot.png")


def test_an_audit_of_a_run_that_was_not_recorded_records_it(result: SimulatedRun, tmp_path: Path) -> None:
    found = result.audit(attacks=False)
    assert found.high == 0
    assert found.checks
    assert "nothing beyond what the protocols declare" in repr(found)
    assert found.save(tmp_path / "audit").read_text("utf-8").startswith("<!doctype html>")
    assert {path.name for path in (tmp_path / "audit").iterdir()} == {"audit.html", "audit.json"}
    assert result.audit(attacks=False).audit.run.path == found.audit.run.path  # once


def test_an_audit_tells_clear_rows_from_masked_ones(recorded: SimulatedRun, tmp_path: Path) -> None:
    secure = recorded.audit()
    assert secure.attacks
    assert secure.high == 0
    assert secure.picture().svg.count("<image ") == 2
    again = load_run(recorded.save(tmp_path / "kept")).audit(attacks=False)
    # How long clients took on a busy machine may seem to follow their data.
    assert {one.id for one in again.findings if one.severity != "info"} <= {"response-times"}
    plain = simulate("nations", clients=3, aggregation="plain", alignment="plain", transcript=True, **TINY)
    seen = plain.audit(attacks=False)
    assert seen.high > 0
    assert "high" in seen._repr_html_()
    assert "What the server received: the rows" in seen.picture().svg


def test_triples_of_the_caller_are_trained_on_kept_and_loaded(tmp_path: Path) -> None:
    done = simulate([PAIRS + OTHERS, PAIRS[5:] + OTHERS, PAIRS[9:] + OTHERS], **TINY)
    scratch = done.path.parent
    kept = load_run(done.save(tmp_path / "kept"))
    assert done.client(2).graph.entities == tuple(f"a{number}" for number in range(7))
    del done
    assert not scratch.exists()  # with the last of who could ask for it
    assert kept.client(2).predict_tails("a1", "likes", top=2).candidates > 2
    assert kept.result().title.startswith("FedR on own data")
    with pytest.raises(UserError, match="is not empty"):
        simulate([PAIRS, PAIRS], **TINY).save(tmp_path / "kept")


def test_a_folder_of_clients_is_taken_as_it_is(tmp_path: Path) -> None:
    done = simulate([PAIRS, PAIRS[3:]], **TINY)
    done.save(tmp_path / "kept")
    assert simulate(tmp_path / "kept" / "data", **TINY).metrics == done.metrics


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"round": 3}, "unknown setting round; did you mean rounds?"),
        ({"max_dropot": 0.3}, "unknown setting max_dropot; did you mean max_dropout?"),
        ({"max_dropout": 2}, "max_dropout must be at least 0 and below 1"),
        ({"rounds": "3"}, "rounds must be a whole number, not '3'"),
        ({"reveal_names": 1}, "reveal_names must be True or False, not 1"),
        ({"strategy": "fedx"}, "strategy must be one of fedr, fede"),
        ({"encoder": "gqe"}, "unknown setting encoder; it is for strategies that train on queries"),
        ({"strategy": "fedcqa", "margin": 2}, "unknown setting margin; it is for strategies that train on triples"),
        ({"dataset": "umls"}, "dataset: the data are the first argument"),
        ({"epsilon": 2}, "epsilon is for private training: give dp sgd"),
        ({"dp": "sgd", "epsilon": 2}, "dp needs a budget: delta is missing beside epsilon"),
        ({"preset": "large"}, "preset must be one of auto, paper"),
        ({"model": "foo"}, "model foo: not one of transe"),
        ({"clients": 1}, "1 client: a federation has at least 2"),
        ({"clients": "3"}, "clients must be a whole number from 1 on"),
        ({"clients": 3, "min_holders": 9, "rounds": 2}, "min_holders 9: only 3 clients take part in a round"),
    ],
)
def test_a_mistake_gets_one_line_in_keywords(keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as caught:
        simulate("nations", **keywords)
    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("umlz", "unknown data set umlz; did you mean umls?"),
        (5, "data: give a data set's name, a path"),
        ([PAIRS], "data: 1 list of triples; a federation has at least 2"),
        ([PAIRS, "abc"], "data: client 2 has no list of triples"),
        ([PAIRS, []], "data: client 2 has no triples"),
        ([PAIRS, [("a", "b")]], "data: client 2, triple 0: not a (head, relation, tail)"),
        ([PAIRS, [("a", "b", 3)]], "data: client 2, triple 0: names are strings"),
        ([PAIRS, [("a", "b\t", "c")]], "data: client 2, triple 0: a name has a tab"),
        ([PAIRS, [("a", "b", "c")] * 9], "data: client 2 has too few triples to hold out some"),
    ],
)
def test_data_that_cannot_be_used_get_one_line(data: Any, words: str) -> None:
    with pytest.raises(DataError) as caught:
        simulate(data)
    assert str(caught.value).startswith(words)


def test_options_in_messages_become_keywords() -> None:
    told = in_keywords("--max-dropout must be less; --out DIR stays, and x--seed too")
    assert told == "max_dropout must be less; --out DIR stays, and x--seed too"
    assert settings_of({"model": "rotate", "seed": None}, {"dataset": "nations"}).training.model == "RotatE"


def test_ctrl_c_ends_all_threads_and_leaves_no_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before, round_of = set(threading.enumerate()), FederationServer._round  # type: ignore[attr-defined]

    def interrupted(self: Any, round_id: Any, *more: Any) -> Any:
        if round_id == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return round_of(self, round_id, *more)

    monkeypatch.setattr(FederationServer, "_round", interrupted)
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # processes of pytest-xdist ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            simulate("nations", clients=3, rounds=1000, patience=1000, dim=8, eval_every=1000)
    finally:
        signal.signal(signal.SIGINT, usual)
    for thread in set(threading.enumerate()) - before:
        thread.join(5.0)  # a moment, after all that it had to do
    assert set(threading.enumerate()) - before == set()
    assert list(tmp_path.iterdir()) == []


def test_a_failing_client_is_told_as_it_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    from secure_kg.learning.kge import KgeLearner

    def broken(self: Any, *more: Any) -> Any:
        raise ArithmeticError("no good")

    monkeypatch.setattr(KgeLearner, "train", broken)
    with pytest.raises(ArithmeticError, match="no good"):
        simulate("nations", clients=2, **TINY)


def test_what_is_promised_can_be_imported() -> None:
    assert {"simulate", "load_run", "UserError"} <= set(dir(secure_kg))
    assert all(getattr(secure_kg, name) is not None for name in secure_kg.__all__)
    stub = Path(str(secure_kg.__file__)).with_suffix(".pyi").read_text("utf-8")
    assert sorted(re.findall(r" as (\w+)$", stub, re.MULTILINE)) == sorted(secure_kg.__all__)

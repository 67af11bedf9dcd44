"""Mistakes at the commands of a run between organisations: one line each, before anything leaves."""

import dataclasses
import json
import os
from pathlib import Path

import pytest

from launch import join, serve
from launch.between.consent import note_consent, require_consent, show_disclosures
from launch.between.run_records import KnownRun, known_run, note_run
from secure_kg.data.folders import client_folder
from secure_kg.federation.client.member_site import MemberSite
from secure_kg.federation.client.take_part import Participation
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.runs.checkpoint import mark_complete
from secure_kg.runs.client_folder import alone
from tests.support.organisations import Organisations, free_port

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Organisations:
    monkeypatch.chdir(tmp_path)
    return Organisations.found(tmp_path, RunConfig(dataset="nations", clients=None))


def joined(place: Organisations, *options: str) -> int:
    return join.main([str(place.coordinator.path), "--data", str(client_folder(place.data, 1)), "--no-status",
                      "--site", "site1", *options])  # fmt: skip


def line(capsys: Capture) -> str:
    (only,) = capsys.readouterr().err.splitlines()
    assert only.startswith("error: ")
    return only


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["join", "nowhere.toml", "--data", "parts", "--site", "site1"], "nowhere.toml"),
        (["join", "coordinator/federation.toml", "--data", "nothing.nt", "--site", "site1"], "no such file or folder"),
        (["join", "coordinator/federation.toml", "--data", "parts", "--site", "site9"], "site9: no such folder"),
        (["join", "coordinator/federation.toml", "--data", "parts", "--site", "coordinator"], "not a member"),
        (["join", "coordinator/federation.toml"], "--data"),
        (["serve", "coordinator/federation.toml", "--site", "site2"], "this is member 2, not the server"),
        (["serve", "coordinator/federation.toml", "--wait", "-1"], "--wait must not be negative"),
        (["serve", "coordinator/federation.toml", "--listen", "x:y"], "the port must be a number"),
        (["serve", "coordinator/federation.toml", "--status-port", "70000"], "no port for the status page"),
    ],
)
@pytest.mark.usefixtures("place")
def test_a_mistake_is_one_line(arguments: list[str], problem: str, capsys: Capture) -> None:
    command, *rest = arguments
    assert (join if command == "join" else serve).main(rest) == 2
    assert problem in line(capsys)


def test_a_port_that_is_taken(place: Organisations, capsys: Capture) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        assert serve.main([str(place.coordinator.path), "--listen", where, "--no-status"]) == 2
    told = line(capsys)
    assert f"cannot listen at {where}" in told
    assert "another process listens there" in told
    assert not Path("runs").exists()


def test_a_run_folder_that_cannot_be_written_is_told_at_once(place: Organisations, capsys: Capture) -> None:
    Path("occupied").write_text("")
    assert serve.main([str(place.coordinator.path), "--out", "occupied/run", "--no-status"]) == 2
    assert "occupied/run/config.toml: cannot be written" in line(capsys)


def test_data_are_read_before_the_server_is_called(
    place: Organisations, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def connected(joining: object) -> None:
        raise AssertionError("the server was called")

    monkeypatch.setattr("launch.hosts.network_member.join_run", connected)
    Path("graph.tsv").write_text("a\tb\tc\na\tb\n")
    command = ["coordinator/federation.toml", "--data", "graph.tsv", "--no-status", "--site", "site1"]
    assert join.main(command) == 2
    assert "graph.tsv, line 2" in line(capsys)
    assert known_run(place.path / "site1", place.coordinator.roster.digest) is None


@pytest.mark.parametrize("aggregation", ["secagg", "plain"])
def test_another_run_under_one_seed_is_warned_of(
    aggregation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """A third member came after the first run: sums of that seed are opened over two of them only."""
    monkeypatch.chdir(tmp_path)
    place = Organisations.found(tmp_path, RunConfig(dataset="nations", clients=None, aggregation=aggregation))
    digest = place.coordinator.roster.digest
    monkeypatch.setattr("launch.hosts.network_member.join_run", lambda joining: Participation.ALL_PRESENT)
    monkeypatch.setattr("launch.hosts.network.serve_run", lambda serving, server: None)
    serving = ["coordinator/federation.toml", "--listen", f"127.0.0.1:{free_port()}", "--no-status"]
    before = os.umask(0)
    try:
        for party, run in (("coordinator", "runs/new"), ("site1", "runs/new/clients/1")):
            own = Path(party)
            told = []
            for known in ({}, {bytes(32): Path("runs/first")}, {digest: tmp_path / run}):
                (own / "runs.json").unlink(missing_ok=True)
                for federation, path in known.items():
                    note_run(own, federation, KnownRun(path, over=party != "coordinator"))
                again = party == "site1" and digest in known
                command = [*serving, "--out", "runs/new"] if party == "coordinator" else []
                assert (serve.main(command) if command else joined(place, *(["--again"] if again else []))) == 0
                told.append("has run before under seed 0" in capsys.readouterr().out)
            hides = aggregation == "secagg"
            assert told == [False, hides, hides and party == "site1"]  # a server goes on with the run that it was at
        assert os.umask(0) == 0o077
    finally:
        os.umask(before)


def test_a_server_says_from_where_it_goes_on(
    place: Organisations, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr("launch.hosts.network.serve_run", lambda serving, server: None)
    serving = ["coordinator/federation.toml", "--listen", f"127.0.0.1:{free_port()}", "--no-status", "--out", "run"]
    told = []
    for _ in range(2):
        assert serve.main(serving) == 0
        told.append(capsys.readouterr().out)
    mark_complete(place.path / "run", 4, [1, 2, 3])
    assert serve.main(serving) == 0
    assert "begins anew" not in told[0]
    assert "begins anew: no checkpoint yet" in told[1]
    assert "goes on from the checkpoint of round 4" in capsys.readouterr().out


def test_who_joins_before_a_check_is_told_the_command(place: Organisations, capsys: Capture) -> None:
    (place.path / "site1/record.json").unlink()
    assert joined(place) == 2
    assert "launch.site check coordinator/federation.toml --folder site1 --fingerprint" in line(capsys).replace(
        f"{place.path}/", ""
    )


def test_consent_that_nobody_can_give_stops_a_site(place: Organisations, capsys: Capture) -> None:
    assert joined(place, "--consent") == 2
    shown = capsys.readouterr()
    assert "what this run discloses" in shown.out
    assert "nobody can be asked here" in shown.err


def test_consent_is_of_the_settings_that_were_shown(
    place: Organisations, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    site, settings = place.path / "site1", place.coordinator.roster.settings
    answers = iter([False, True])
    monkeypatch.setattr("launch.between.consent.is_terminal", lambda: True)
    monkeypatch.setattr("launch.between.consent.asked", lambda question: next(answers))
    with pytest.raises(UserError, match="nothing has left this site"):
        require_consent(settings, site, "Site 1")
    require_consent(settings, site, "Site 1")
    note_consent(settings, site)
    require_consent(settings, site, "Site 1")  # no third question
    assert "was given at" in capsys.readouterr().out
    with pytest.raises(StopIteration):
        require_consent(RunConfig(dataset="nations", seed=1), site, "Site 1")
    (site / "consent.json").write_text("[]")
    with pytest.raises(UserError, match="not a record of consent"):
        require_consent(settings, site, "Site 1")


def test_what_is_disclosed_depends_on_the_settings(capsys: Capture) -> None:
    show_disclosures(RunConfig(aggregation="plain", alignment="plain", clients=3))
    clear = capsys.readouterr().out
    show_disclosures(RunConfig(clients=3))
    assert "every client's" in clear
    assert "their sums only" in capsys.readouterr().out


def test_one_process_of_a_site_at_a_time(
    place: Organisations, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr("secure_kg.runs.client_folder._ENDING_SECONDS", 0.1)
    with alone(place.path / "site1"):
        assert joined(place) == 2
    assert "takes part in another session" in line(capsys)


def test_a_site_knows_the_run_that_it_was_at(place: Organisations, capsys: Capture) -> None:
    site, digest = place.path / "site1", place.coordinator.roster.digest
    assert known_run(site, digest) is None
    note_run(site, digest, KnownRun(place.path / "runs/a/clients/1"))
    assert known_run(site, digest) == KnownRun(place.path / "runs/a/clients/1")
    note_run(site, digest, KnownRun(place.path / "runs/a/clients/1", over=True))
    assert joined(place) == 0
    assert "is complete" in capsys.readouterr().out
    assert known_run(site, bytes(32)) is None
    (site / "runs.json").write_text(json.dumps({digest.hex(): {"path": 3}}))
    assert joined(place) == 2
    assert "not a record of runs" in line(capsys)


def test_a_server_cannot_name_a_run_of_other_settings(place: Organisations) -> None:
    settings = place.coordinator.roster.settings
    site = MemberSite(config=settings, number=1, clients=3, runs=Path("runs"), out=None, resume=True,
                      keys=place.path / "site1/keys", report=lambda line: None)  # fmt: skip
    assert site.folder("now") == Path("runs/now/clients/1")
    assert site.folder("now") == Path("runs/now/clients/1")
    with pytest.raises(
        UserError, match=r"another run \(runs/next\) than the one that this site has begun \(runs/now\)"
    ):
        site.folder("next")
    site.begun.clear()  # --again
    with pytest.raises(UserError, match="that is complete"):
        dataclasses.replace(site, complete=Path("runs/now/clients/1").absolute()).folder("now")
    (Path("runs") / "earlier").mkdir(parents=True)
    Path("runs/earlier/config.toml").write_text(RunConfig(dataset="umls", clients=3).to_toml())
    with pytest.raises(UserError, match="a run with other settings"):
        site.folder("earlier")


def test_a_folder_with_another_run_is_not_served(place: Organisations, capsys: Capture) -> None:
    Path("other").mkdir()
    Path("other/config.toml").write_text(RunConfig(dataset="umls", clients=3).to_toml())
    assert serve.main([str(place.coordinator.path), "--out", "other", "--no-status"]) == 2
    assert "has a run with other settings" in line(capsys)

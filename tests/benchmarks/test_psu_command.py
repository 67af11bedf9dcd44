"""The benchmark of one private set union on small sizes, and its mistakes. Times are never compared."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import psu
from protocols.alignment.psu import simulation
from protocols.alignment.psu.attempts import Attempt, LookedUp
from protocols.alignment.psu.layout import TableLayout

SMALL = ["--clients", "4", "--elements", "100", "--overlap", "0.5"]


def test_writes_the_figures_and_shows_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert psu.main([*SMALL, "--json", str(tmp_path / "deep" / "psu.json")]) == 0
    report = json.loads((tmp_path / "deep" / "psu.json").read_text())
    assert (report["clients"], report["elements"], report["overlap"], report["union"]) == (4, 100, 0.5, 100)
    assert report["set_sizes"] == [63, 63, 62, 62]
    assert report["survivors"] == 4
    for name in ("client_seconds", "server_seconds", "total_seconds", "peak_mb", "bytes_up_per_element"):
        assert report[name] > 0
    assert report["client_seconds"] == pytest.approx(sum(report["client_parts"].values()))
    assert report["server_seconds"] == pytest.approx(sum(report["server_parts"].values()))
    layout = TableLayout.for_bound(100)
    assert report["client_bytes_up"] > 8 * layout.entries
    assert report["client_bytes_down"] > report["places_bytes"] > 4 * layout.cells
    published = {theirs["source"].split(",")[0]: theirs for theirs in report["published"]}
    assert {name: (theirs["parties"], theirs["seconds"]) for name, theirs in published.items()} == {
        "Kolesnikov et al.": (2, 238),
        "Liu and Gao": (7, 46),
        "Dong et al.": (3, 4.4),
    }
    assert all(theirs["adversary"] and theirs["difference"] for theirs in published.values())
    shown = " ".join(capsys.readouterr().out.split())
    assert "union of 100 names" in shown
    assert "62 to 63" in shown
    assert "a server that does not collude with a client" in shown
    assert "Kolesnikov" in shown


def test_json_to_standard_output_and_dropouts(capsys: pytest.CaptureFixture[str]) -> None:
    assert psu.main([*SMALL, "--max-dropouts", "1", "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["survivors"] == 3
    assert report["union"] == 100 - 12  # what the last client alone holds


@pytest.mark.parametrize(("overlap", "sizes"), [("0", [34, 33, 33]), ("1", [100, 100, 100]), ("0.99", [100, 99, 99])])
def test_names_are_dealt_out_as_the_help_says(overlap: str, sizes: list[int]) -> None:
    names = psu.names_of(3, 100, float(overlap))
    assert [len(held) for held in names.values()] == sizes
    assert len(set().union(*names.values())) == 100
    assert len(set.intersection(*map(set, names.values()))) == round(100 * float(overlap))


def test_one_element_of_two_clients(capsys: pytest.CaptureFixture[str]) -> None:
    assert psu.main(["--clients", "2", "--elements", "1", "--overlap", "0", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["set_sizes"] == [1, 0]


def test_the_help_says_who_holds_what(capsys: pytest.CaptureFixture[str]) -> None:
    assert psu.main(["--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "is held by every client; the others are dealt out evenly, each to one client alone" in shown


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--clients", "1"], "--clients"),
        (["--elements", "0"], "--elements"),
        (["--elements", "16777217"], "--elements"),
        (["--overlap", "-0.1"], "--overlap"),
        (["--overlap", "1.1"], "--overlap"),
        (["--overlap", "nan"], "--overlap"),
        (["--overlap", "half"], "--overlap"),
        (["--max-dropouts", "-1"], "--max-dropouts"),
        (["--max-dropouts", "5"], "--max-dropouts"),
        (["--max-dropouts", "4"], "honest survivors"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_a_mistake_gets_one_line(options: list[str], part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert psu.main(options) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 1
    assert errors[0].startswith("error: ")
    assert part in errors[0]


def test_a_file_that_cannot_be_written_is_noticed_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    for target in (tmp_path, tmp_path / "file" / "psu.json"):
        assert psu.main(["--json", str(target)]) == 2
        output = capsys.readouterr()
        assert output.out == ""
        assert len(output.err.splitlines()) == 1
        assert "cannot be written" in output.err


def test_wrong_positions_are_not_a_success(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    real = Attempt.look_up

    def next_one(*arguments: Any) -> LookedUp:
        found = real(*arguments).positions
        return LookedUp(replace(found, own=found.own + 1))

    monkeypatch.setattr(Attempt, "look_up", next_one)
    assert psu.main([*SMALL, "--json", "-"]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.splitlines()) == 1
    assert "do not fill" in output.err


def test_a_union_that_takes_several_attempts_counts_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it happens by bad luck once in 1000 times, also in this test: tables that really failed count as well."""
    real, outcomes = simulation.places_of, list[bool]()

    def unlucky(*arguments: Any) -> Any:
        outcomes.append(False)
        if len(outcomes) == 1:
            raise simulation.PeelFailed("bad luck")
        places = real(*arguments)
        outcomes[-1] = True
        return places

    monkeypatch.setattr(simulation, "places_of", unlucky)
    options = psu._parser().parse_args([*SMALL, "--json", "-"])
    report = psu.measure(options)
    assert report["attempts"] == len(outcomes) >= 2
    assert outcomes[-1]
    assert report["union"] == 100
    layouts = [TableLayout.for_bound(bound) for bound in (100, 400)]
    assert report["client_bytes_up"] > 8 * sum(layout.entries for layout in layouts)

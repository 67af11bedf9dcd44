"""A job between organisations on this machine: its folders, and what its command refuses."""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.links import job
from launch.federation_settings import settings_of
from secure_kg.data.client_data import load_graph
from secure_kg.foundation.errors import UserError
from secure_kg.provisioning.record import accepted_roster, own_number


def test_members_have_the_data_that_clients_under_mpirun_have(tmp_path: Path) -> None:
    settings = settings_of("fede", ["--dataset", "nations", "--by", "relations", "--seed", "3"])
    sites = job.found(tmp_path, settings, 3, "127.0.0.1:4433")
    for number in (1, 2, 3):
        roster = accepted_roster(sites.coordinator / "federation.toml", sites.site(number))
        assert own_number(roster, sites.site(number)) == number
        own = load_graph(dataclasses.replace(settings, client_data=str(sites.data(number))), 3, number)
        twin = load_graph(settings, 3, number)
        assert (own.entities, own.relations) == (twin.entities, twin.relations)
        assert np.array_equal(own.train, twin.train)
        assert np.array_equal(own.test, twin.test)


@pytest.mark.parametrize(
    "options",
    [
        ["fedr", "--clients", "1", "--out", "new"],
        ["fedr", "--link", "slow", "--out", "new"],
        ["fedr", "--out", "."],
        ["fedr", "--out", "new", "--", "--client-data", "parts"],
        ["ask", "--out", "new"],
    ],
)
def test_mistakes_are_told_in_a_line(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert job.main(options) == 2
    (line,) = capsys.readouterr().err.strip().split("\n")
    assert line.startswith("error: ")
    assert not (tmp_path / "new").exists()


def test_the_words_of_the_party_that_failed_are_told_and_nobody_is_left(tmp_path: Path) -> None:
    lines = "import sys; print('something'); print('error: no data'); sys.exit(2)"
    each = {
        "the server": [sys.executable, "-c", "import time; time.sleep(60)"],
        "client 1": [sys.executable, "-c", lines],
    }
    with pytest.raises(UserError, match="client 1: no data"), job._started(each, tmp_path) as parties:
        job._wait(parties, tmp_path)
    assert all(party.poll() is not None for party in parties.values())

"""Runs between organisations as processes: commands as they are typed, and SIGKILL at random moments."""

import dataclasses
import random
import time
from pathlib import Path
from typing import Any, Final

import pytest

from secure_kg.data.folders import client_folder
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.learning.config import TrainingConfig
from tests.support.organisations import ended_well, organisations

SETTINGS = RunConfig(
    dataset="nations", rounds=4, eval_every=2, checkpoint_every=2, patience=50, training=TrainingConfig(dim=4)
)
LONGER: Final = dataclasses.replace(SETTINGS, rounds=100, eval_every=10, checkpoint_every=10)
MOMENTS: Final = 10


@pytest.mark.timeout(200)
def test_two_sites_and_a_server_by_their_commands(tmp_path: Path) -> None:
    with organisations(tmp_path, SETTINGS, members=2) as place:
        own = client_folder(place.data, 1) / "train.tsv"
        members = [place.join(1, data=own), place.join(2)]
        server = place.serve()
        ended_well([server, *members])
        assert "serving 2 members at https://127.0.0.1" in server.text
        assert "aggregation was secure" in server.text
        before, _, after = members[0].text.partition("own data: ")
        assert "what this run discloses" in before  # first of all
        assert "divided by seed 0" in after
        assert "the run is over; this site's model and results" in after
        assert place.summary()["clients"] == []
        assert "to compare" not in server.text
        assert {path.stat().st_mode & 0o077 for path in (place.run, *place.run.rglob("*"))} == {0}
        private = [path for path in (tmp_path / "site1").rglob("*") if path.is_file() and path.name != "request.toml"]
        assert {path.stat().st_mode & 0o077 for path in private} == {0}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("moment", range(MOMENTS))
@pytest.mark.parametrize("whose", ["server", "member"])
def test_a_run_outlives_the_death_of_any_party(tmp_path: Path, whose: str, moment: int) -> None:
    unbroken = _mrr(tmp_path / "unbroken")
    draws = random.Random(f"{whose} {moment}")
    number = 0 if whose == "server" else draws.randint(1, 3)
    summary = _mrr(tmp_path / "killed", number, draws.uniform(0.0, 8.0))
    if not summary["dropouts"]:
        assert summary["mrr"] == unbroken["mrr"]
        assert summary["abandoned_sums"] == []
    else:  # it came too late: of the rounds in between it was a dropout, and no other party was
        assert number
        assert {one["client"] for one in summary["dropouts"]} == {number}


def _mrr(path: Path, killed: int | None = None, after: float = 0.0) -> dict[str, Any]:
    """The summary of a run in which one party is killed and started again; 0: the server."""
    with organisations(path, LONGER) as place:
        parties = {0: place.serve(), **{number: place.join(number) for number in (1, 2, 3)}}
        if killed is not None:
            parties[0].wait_to_say("serving")
            time.sleep(after)
            if parties[killed].process.poll() is None:
                parties[killed].kill()
                parties[killed] = place.serve() if killed == 0 else place.join(killed)
        ended_well(list(parties.values()))
        return place.summary()

"""A server and five sites on six hosts with folders of their own: the result of mpirun, whatever happens to a party.

The hosts are network namespaces; sites reach the server and not each other.
"""

import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.mpi_jobs import run_job
from tests.support.namespaces import hosts
from tests.support.six_hosts import SERVER, SITES, SixHosts, kill
from tests.support.waiting import wait_until

SETTINGS = ["--dataset", "nations", "--dim", "16", "--rounds", "6", "--eval-every", "3", "--checkpoint-every", "2",
            "--patience", "100"]  # fmt: skip
LONG = [*SETTINGS[:4], "--rounds", "60", *SETTINGS[6:], "--grace", "20"]


@pytest.fixture
def six(tmp_path: Path) -> Iterator[SixHosts]:
    with hosts(tmp_path / "hosts", [SERVER, *SITES]) as network:
        network.isolate(*SITES)
        made = SixHosts(network, tmp_path / "parts")
        try:
            yield made
        finally:
            made.end()


def under_mpirun(folder: Path, parts: Path, *settings: str) -> dict[str, Any]:
    done = run_job(6, *settings, "--client-data", str(parts), "--out", "twin", cwd=folder)
    assert done.code == 0, done.errors
    found: dict[str, Any] = json.loads((folder / "twin/summary.json").read_text())
    return found


@pytest.mark.parametrize("typed", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["quickly", "by commands"])
def test_the_result_is_that_of_mpirun_to_the_last_bit(six: SixHosts, tmp_path: Path, typed: bool) -> None:
    (six.found_by_commands if typed else six.found)("fedr", *SETTINGS)
    six.ended_well([six.serve(), *map(six.join, SITES)])
    found, twin = six.summary(), under_mpirun(tmp_path, six.parts, *SETTINGS[2:])
    assert (found["mrr"], found["metrics"]) == (twin["mrr"], twin["metrics"])
    assert found["dropouts"] == []
    server = six.network[SERVER].folder
    assert not list(server.rglob("clients/*/*.safetensors"))  # what a site keeps is at the site
    for name in SITES:
        (own,) = (six.network[name].folder / "runs").glob("*/clients/*/model.safetensors")
        assert own.parent.name == name[-1]


@pytest.mark.slow
@pytest.mark.parametrize("moment", range(10))
@pytest.mark.parametrize("party", [SERVER, SITES[2]])
def test_a_party_killed_at_any_moment_costs_nothing_but_time(
    six: SixHosts, party: str, moment: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    six.found("fedr", *LONG)
    running = {SERVER: six.serve(), **{name: six.join(name) for name in SITES}}
    wait_until(lambda: (six.network[SERVER].folder / "run/config.toml").exists())
    time.sleep(random.Random(moment).uniform(0.0, 8.0))
    if running[party].poll() is None:
        kill(six.network[party], "serve" if party == SERVER else "join")
    running[party].wait()
    running[party] = six.serve() if party == SERVER else six.join(party)
    six.ended_well(list(running.values()))
    found = six.summary()
    record_property("dropouts", found["dropouts"])
    if not found["dropouts"]:
        assert found["mrr"] == under_mpirun(tmp_path, six.parts, *LONG[2:])["mrr"]
    else:
        assert {one["client"] for one in found["dropouts"]} == {SITES.index(party) + 1}


@pytest.mark.slow
def test_a_site_whose_cable_is_pulled_for_a_while_is_there_again(six: SixHosts, tmp_path: Path) -> None:
    six.found("fedr", *LONG)
    running = [six.serve(), *map(six.join, SITES)]
    wait_until(lambda: (six.network[SERVER].folder / "run/checkpoint.json").exists())
    six.network.cut(SITES[0])
    time.sleep(4.0)
    six.network.mend(SITES[0])
    six.ended_well(running)
    assert six.summary()["mrr"] == under_mpirun(tmp_path, six.parts, *LONG[2:])["mrr"]

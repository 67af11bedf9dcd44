"""Uses of what the recipes of CONTRIBUTING.md have added: `python -m tests.contributing.trying FOLDER HEADING...`.

Runs in a copy of the project, which is the current folder and comes first among the places of modules.
"""

import contextlib
import importlib
import io
import json
import queue
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from launch import fedr_secagg
from launch.options import parse
from protocols.alignment import plain as plain_union
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.session.conversation import Conversation
from protocols.transport.in_threads import run_in_process
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.learning.config import TrainingConfig
from tests.support.federation_in_threads import SMALL, Run, nations, run_federation, small_config
from tests.support.in_threads import SESSION, at_once, at_server

CLIENTS = 3


def trained(folder: Path, name: str, **changes: Any) -> Run:
    """A small federation, with the learner that its plan asks for."""

    def learner(graph: Any, config: RunConfig, number: int) -> Any:
        return RunPlan(config, CLIENTS).learner.make(config, graph, number, torch_cpu())

    settings = {"clients": CLIENTS, "rounds": 3, "eval_every": 3, "aggregation": "plain", "alignment": "plain"}
    run = run_federation(small_config(**{**settings, **changes}), nations(CLIENTS), folder / name, trainer_of=learner)
    run.done()
    return run


def torch_cpu() -> Any:
    return importlib.import_module("torch").device("cpu")


def parsed(*arguments: str) -> RunConfig:
    return parse(arguments, "job", "", "").config


def helped() -> str:
    """What --help says, on one line."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.suppress(SystemExit):
        parsed("--help")
    return " ".join(told.getvalue().split())


def a_sum(folder: Path) -> None:
    assert parsed("--aggregation", "echo").aggregation == "echo"
    plain, echo = trained(folder, "plain").done(), trained(folder, "echo", aggregation="echo").done()
    assert echo.test == plain.test


def an_alignment(folder: Path) -> None:
    assert parsed("--alignment", "hashed").alignment == "hashed"
    plain, hashed = trained(folder, "plain").done(), trained(folder, "hashed", alignment="hashed").done()
    assert (hashed.test, hashed.union_size) == (plain.test, plain.union_size)


def a_learner(folder: Path) -> None:
    assert parsed("--strategy", "anchored").strategy == "anchored"
    assert "anchored: relation rows, which stay near their means" in helped()
    run = trained(folder, "anchored", strategy="anchored", aggregation="secagg", alignment="psu")
    assert {type(learner).__name__ for learner in run.trainers.values()} == {"AnchoredLearner"}
    assert run.done().test != trained(folder, "fedr").done().test


def a_model(folder: Path) -> None:
    assert parsed("--model", "um").training.model == "UM"
    sizes = {name: getattr(SMALL, name) for name in ("dim", "negatives", "batch_size", "local_epochs", "lr")}
    run = trained(folder, "um", rounds=2, training=TrainingConfig(model="UM", **sizes), strategy="fede")
    assert {type(learner.model).__name__ for learner in run.trainers.values()} == {"UM"}
    test = run.done().test
    assert test is not None
    assert test.headline > 0.1


def a_transport(folder: Path) -> None:
    made = importlib.import_module("protocols.transport.queues").QueueTransport
    boxes: dict[PartyId, Any] = {PartyId(number): queue.SimpleQueue() for number in range(CLIENTS + 1)}
    names = {1: ["a", "b"], 2: ["b", "c"], 3: ["a", "d"]}

    def client(transport: Any) -> Any:
        return plain_union.join(at_once(Conversation(transport, SESSION)), names[transport.party])

    ended = run_in_process(
        lambda transport: plain_union.serve(at_server(Conversation(transport, SESSION))),
        {PartyId(number): client for number in names},
        endpoint=lambda network, party: made(party, boxes),
        seconds=60,
    )
    assert ended.server.result().size == 4
    places = {number: ended.clients[PartyId(number)].result().own for number in names}
    np.testing.assert_array_equal(places[1], [0, 1])
    np.testing.assert_array_equal(places[2], [1, 2])
    assert boxes[SERVER].empty()


def a_host(folder: Path) -> None:
    tiny = ["--dataset", "nations", "--rounds", "2", "--dim", "8", "--eval-every", "2", "-n", "4"]
    out = folder / "run"
    assert fedr_secagg.main(["--host", "threads", *tiny, "--out", str(out)]) == 0
    assert json.loads((out / "summary.json").read_text(encoding="utf-8"))["number_of_clients"] == CLIENTS
    assert fedr_secagg.main(["--host", "threads", "--dataset", "nowhere", "--out", str(folder / "other")]) == 2


TRIED: dict[str, Callable[[Path], None]] = {
    "A sum": a_sum,
    "An alignment": an_alignment,
    "A learner": a_learner,
    "A model": a_model,
    "A transport": a_transport,
    "A host": a_host,
}

if __name__ == "__main__":
    project = Path(importlib.import_module("protocols").__file__ or "").parents[1]
    assert project == Path.cwd(), f"the modules of {project} were loaded"
    for number, heading in enumerate(sys.argv[2:]):
        place = Path(sys.argv[1], f"tried-{number}")
        place.mkdir()
        TRIED[heading](place)

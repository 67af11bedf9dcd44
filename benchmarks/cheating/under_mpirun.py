"""Some of the cheats as the server of a real job: a process of its own, with clients that are processes, too."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.cheating.evaluations import EvaluationOnDemand
from benchmarks.cheating.meddling import Cheat, Meddling
from benchmarks.cheating.sessions import Dies
from benchmarks.cheating.tables import BEYOND, TwoTables
from protocols.transport.base import Transport
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server.server import FederationServer
from secure_kg.runs.run_folder import RunFolder

CHEATS: Final[dict[str, Callable[[], Cheat]]] = {
    "two-tables": partial(TwoTables, BEYOND),
    "dies": partial(Dies, 4),
    "evaluation-on-demand": EvaluationOnDemand,
}


def cheating_server(
    name: str, notebook: Path, config: RunConfig, transport: Transport, folder: RunFolder, *more: Any
) -> FederationServer:
    """To stand in the place of `FederationServer` once the first two arguments are given."""
    cheat = CHEATS[name]()
    cheat.server_object = cheat.server(config, Meddling(transport, cheat, notebook), folder, *more)
    return cheat.server_object

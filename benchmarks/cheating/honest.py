"""Nobody cheats here: the same runs as the others', which an audit must leave in peace."""

from pathlib import Path

from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.sessions import Dies
from benchmarks.cheating.stage import CLIENTS, Stage, stage_config
from protocols import wire
from protocols.identifiers import PartyId


def run(path: Path) -> Played:
    return _played(Stage(path, stage_config()), Cheat())


def secret(path: Path) -> Played:
    return _played(Stage(path, stage_config(aggregation="secret")), Cheat())


def resumed(path: Path) -> Played:
    """Its server dies, without malice."""
    return _played(Stage(path, stage_config()), Dies(4), Cheat())


def without_common_rows(path: Path) -> Played:
    """Every relation has one holder, so that no row is ever averaged."""
    return _played(Stage(path, stage_config(by="relations", min_holders=2)), Cheat())


class _Loses(Cheat):
    """A client is lost before its keys of a sum have come, as far as the server can see."""

    def send(self, to: PartyId, message: wire.Message) -> tuple[wire.Message, ...]:
        return (message,)


def dropout(path: Path) -> Played:
    return _played(Stage(path, stage_config()), _Loses())


def _played(stage: Stage, *servers: Cheat) -> Played:
    for server in servers:
        stage.perform(server)
    finished = stage.last.outcome is not None and not stage.refused
    return Played(stage, not finished, {"clients": CLIENTS, "problem": stage.last.server_error, "finished": finished})

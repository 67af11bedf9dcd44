"""Nobody cheats here: the same runs as the others', which an audit must leave in peace."""

from pathlib import Path

from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.sessions import Dies
from benchmarks.cheating.stage import CLIENTS, Stage, stage_config


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


def dropout(path: Path) -> Played:
    """A client is lost for good in the middle of a sum."""
    return _played(Stage(path, stage_config(grace=2.0), vanishes=(CLIENTS, 3)), Cheat())


def _played(stage: Stage, *servers: Cheat) -> Played:
    for server in servers:
        stage.perform(server)
    finished = stage.last.outcome is not None and not stage.refused
    return Played(stage, not finished, {"clients": CLIENTS, "problem": stage.last.server_error, "finished": finished})

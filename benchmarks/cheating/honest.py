"""Nobody cheats here: the same runs as the others', which an audit must leave in peace."""

import time
from pathlib import Path
from typing import Final

from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.sessions import Dies
from benchmarks.cheating.stage import CLIENTS, Stage, stage_config
from benchmarks.cheating.unions import substituted
from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.session.conversation import Conversation
from protocols.sums.secagg.messages import UnmaskShares

_STALLED_IN: Final = 3
_STALL: Final = 3.0
"""Seconds: more than the grace, less than the deadline."""


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


def stalled(path: Path) -> Played:
    """In one round all clients are too slow to open the sum of rows: their answers come when all are dropouts."""
    honest = Conversation.send

    def send(self: Conversation, to: PartyId, message: wire.Message, round_id: RoundId) -> None:
        if isinstance(message, UnmaskShares) and (message.purpose, round_id) == ("rows", _STALLED_IN):
            time.sleep(_STALL)
        honest(self, to, message, round_id)

    with substituted(Conversation, "send", send):
        return _played(Stage(path, stage_config(deadline=_STALL + 1.0, grace=1.0)), Cheat())


def _played(stage: Stage, *servers: Cheat) -> Played:
    for server in servers:
        stage.perform(server)
    finished = stage.last.outcome is not None and not stage.refused
    return Played(stage, not finished, {"clients": CLIENTS, "problem": stage.last.server_error, "finished": finished})

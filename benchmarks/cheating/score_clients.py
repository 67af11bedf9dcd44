"""Clients that cheat in score queries: an asker that asks one scorer alone, and scorers that frame the server."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.score_stage import ACTIVE, ASKER, CLIENTS, SEMI_HONEST, VICTIM, Asked, ScoreStage, terms_of
from protocols.foundation import wire
from protocols.foundation.identifiers import SERVER, PartyId, RoundId, SessionId
from protocols.foundation.wire import HEADER, Frame
from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.scores.messages import PURPOSE, AskScores, ScoresAsked, ScoresTotal
from protocols.scores.topk.messages import DealtSeed, SelectionRelay, SelectionStep
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Back, LeaveOut
from protocols.sums.secagg.messages import PEERS_BYTES, MaskedInput
from protocols.sums.secagg.session import SecAggSession
from protocols.sums.secagg.vectors import VectorClient
from protocols.sums.totals import SumTotal
from protocols.transport.in_process import InProcessNetwork, InProcessTransport
from secure_kg.audit.scores.audit import audit_scores
from secure_kg.audit.scores.session import open_session

FRAMER: Final = CLIENTS[-1]
_LATER: Final = int(terms_of(1).round)
Added: TypeAlias = Sequence[tuple[wire.Message | bytes, int]]
"""Messages with their rounds, or what is none."""


class _TwoFaced(SecAggSession):
    """Channels of an asker that seals zeros in place of the queries for all scorers but the victim."""

    def seal_for(self, peer: PartyId, use: str, secret: bytes) -> bytes:
        if use.startswith("ask scores/") and peer != VICTIM:
            secret = secret[:-4] + bytes(4)
        return super().seal_for(peer, use, secret)


class TwoFacedVectors(VectorClient):
    def setup(self, session: ClientSession) -> None:
        super().setup(session)
        self.session.__class__ = _TwoFaced


def one_alone(path: Path, backend: str = "masked") -> Played:
    """Judged by whether the asker reads a sum in which the victim was asked something else than the others."""
    model = ACTIVE if backend == "masked" else SEMI_HONEST
    stage = ScoreStage(path, backend, [Asked.of(terms_of(0), b"queries")], model)
    stage.vectors_of[ASKER] = TwoFacedVectors
    stage.perform(Cheat())
    return Played(stage, bool(stage.answers), {"answers": len(stage.answers)})


class _Adding(InProcessTransport):
    """The end of a client that says more than it should, once, in the second batch."""

    def __init__(self, network: InProcessNetwork, party: PartyId, step: str, added: Callable[[], Added]) -> None:
        super().__init__(network, party, [SERVER])
        self._at, self._added = step, added
        self.done = False

    def _post(self, to: PartyId, frame: Frame) -> None:
        if not self.done and self._round >= _LATER and self._phase.startswith(self._at):
            self.done = True
            session = SessionId(HEADER.unpack_from(frame)[4])
            for message, number in self._added():
                raw = message if isinstance(message, bytes) else wire.encode(message, session, RoundId(number))
                super()._post(to, raw)
        super()._post(to, frame)


def added_to_sums() -> Added:
    """What an honest server drops, in its own words and in those of clients; of masked sums."""
    noise = np.frombuffer(np.random.default_rng(0).bytes(64), dtype="<u4")
    return [
        (AskScores(PURPOSE, {2: bytes(100)}), 1),
        (ScoresAsked(PURPOSE, bytes(100)), 1),
        (ScoresTotal(PURPOSE, [2, 3], np.zeros(4, dtype="<u4")), 1),
        (SumTotal.of(RoundId(1), HOLDERS, [PartyId(2), PartyId(3)], np.zeros(4, dtype="<u8")), 1),
        (MaskedInput(PURPOSE, noise, bytes(PEERS_BYTES)), 1),
        (Back(), 1),
        (LeaveOut(), 1),
    ]


def added_to_selections() -> Added:
    """The same, of selections."""
    return [
        (SelectionStep(PURPOSE, 1, [0], bytes(40), {}), 1),
        (DealtSeed(PURPOSE, bytes(32)), 1),
        (SelectionRelay(PURPOSE, 1, {}, {}, b""), 1),
        (AskScores(PURPOSE, {2: bytes(100)}), 1),
    ]


def framing(path: Path, backend: str, step: str, added: Callable[[], Added]) -> Played:
    """Judged by whether the audit has a high finding about an honest server, or comes to no end."""
    asked = [Asked.of(terms_of(number), f"queries {number}".encode()) for number in range(2)]
    stage = ScoreStage(path, backend, asked, ACTIVE if backend == "masked" else SEMI_HONEST)
    stage.ends[FRAMER] = lambda network: _Adding(network, FRAMER, step, added)
    stage.perform(Cheat())
    session = open_session(stage.run)
    found = audit_scores(session, stage.directory).findings if session is not None else ()
    accused = [finding.id for finding in found if finding.severity == "high"]
    return Played(stage, bool(accused), {"answers": len(stage.answers), "accused_of": accused})


def noise(path: Path) -> Played:
    """What is no message: the server ends the session for it."""
    return framing(path, "masked", "advertise", lambda: [(b"\7" * 64, 1)])

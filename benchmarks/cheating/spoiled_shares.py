"""Parties by whom shares do not open: members that seal nonsense or accuse falsely, and a server that flips bits.

They learn nothing by it. What they want is that others end their part, are left out, or train without end.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.spoils import said
from benchmarks.cheating.stage import COLLUDER, VICTIM, Stage, stage_config
from benchmarks.cheating.unions import substituted
from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.session.control import RefuseShares
from protocols.session.conversation import Conversation
from protocols.sums.secagg.messages import EncryptedShares, MaskedInput, ShareKeys
from protocols.sums.secagg.refusals import MOST_IN_A_ROW
from secure_kg.federation.server.server import FederationServer

ROUNDS: Final = 8
_FROM: Final = 2
"""The first round in which they do it."""
_MOST_LOST: Final = 2
"""Sums of rows that one cheating member may cost."""
Change = Callable[[wire.Message], wire.Message]


def _flipped(sealed: dict[int, bytes], of: Iterable[int]) -> dict[int, bytes]:
    """With one bit of some changed."""
    chosen = set(of)
    return {peer: bytes([one[0] ^ 1]) + one[1:] if peer in chosen else one for peer, one in sealed.items()}


def _as_member(path: Path, change: Change) -> Played:
    """The colluder sends `change` of each message of a sum of rows. Its success: another member's part has ended, or
    more sums were lost than one member may cost."""
    honest = Conversation.send

    def send(self: Conversation, to: PartyId, message: wire.Message, round_id: RoundId) -> None:
        if self.transport.party == COLLUDER and getattr(message, "purpose", "") == "rows" and round_id >= _FROM:
            message = change(message)
        honest(self, to, message, round_id)

    with substituted(Conversation, "send", send):
        stage = Stage(path, stage_config(rounds=ROUNDS))
        session = stage.perform(Cheat())
    outcome = session.outcome
    ended = sorted(number for number in session.refused if number != COLLUDER)
    lost = 0 if outcome is None else sum(one.purpose == "rows" for one in outcome.abandoned_sums)
    evidence = {
        "parts_ended": ended,
        "sums_lost": lost,
        "left_out": [] if outcome is None else [[one.client, one.round, one.returned] for one in outcome.dropouts],
        "server_error": session.server_error,
    }
    return Played(stage, bool(ended) or outcome is None or lost > _MOST_LOST, evidence)


def nonsense_for_all(path: Path) -> Played:
    """What it seals opens for nobody."""

    def change(message: wire.Message) -> wire.Message:
        if not isinstance(message, ShareKeys):
            return message
        sealed = _flipped(message.sealed, message.sealed)
        return ShareKeys(message.purpose, sealed, message.seed_commitment, message.state, message.signature)

    return _as_member(path, change)


def nonsense_for_one(path: Path) -> Played:
    """What it seals opens for all but the victim. Its success: the victim is left out, where it is not."""

    def change(message: wire.Message) -> wire.Message:
        if not isinstance(message, ShareKeys):
            return message
        sealed = _flipped(message.sealed, [VICTIM])
        return ShareKeys(message.purpose, sealed, message.seed_commitment, message.state, message.signature)

    played = _as_member(path, change)
    left_out = {client for client, *_ in played.evidence["left_out"]}
    return Played(played.stage, played.got or (VICTIM in left_out and COLLUDER not in left_out), played.evidence)


def false_accuser(path: Path) -> Played:
    """It refuses all sums because of the victim, whose shares are as they should be."""

    def change(message: wire.Message) -> wire.Message:
        return RefuseShares("rows", "they do not open", [VICTIM]) if isinstance(message, MaskedInput) else message

    played = _as_member(path, change)
    left_out = {client for client, *_ in played.evidence["left_out"]}
    return Played(played.stage, played.got or VICTIM in left_out, played.evidence)


class _KeepsTheDispute(FederationServer):
    """Asks the victim again, whatever it has refused."""

    def _assemble(self) -> None:
        self._people.disputes.__init__()  # type: ignore[misc]
        super()._assemble()


class FlipsShares(Cheat):
    """Changes what the victim is sent of one other client, in every sum of rows."""

    server = _KeepsTheDispute

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if to == VICTIM and isinstance(message, EncryptedShares) and message.purpose == "rows" and self.round >= _FROM:
            sealed = _flipped(message.sealed, [COLLUDER])
            return (EncryptedShares(message.purpose, sealed, message.states, message.signatures),)
        return (message,)


def flipped_by_the_server(path: Path) -> Played:
    """Its success: the victim goes on for more sums than a client bears."""
    stage = Stage(path, stage_config(rounds=3 * MOST_IN_A_ROW, eval_every=3 * MOST_IN_A_ROW))
    session = stage.perform(FlipsShares())
    refused = len(said(session, RefuseShares, sender=VICTIM))
    evidence = {"sums_refused": refused, "most": MOST_IN_A_ROW, "told": session.refused.get(VICTIM, "")}
    return Played(stage, refused > MOST_IN_A_ROW or VICTIM not in session.refused, evidence)

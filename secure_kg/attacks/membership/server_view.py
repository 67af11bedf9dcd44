"""Rows in the server's view, round by round: uploads as it decodes them, and the means that it sends.

Attacker: the server. It reads messages that pass it (`ServerRows.observe`), live as a tap on its own end of the wire or
          from a transcript. Of uploads under masks it decodes noise, and of secret sums it has no means at all.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from protocols.foundation import wire
from protocols.foundation.errors import DecodeError
from protocols.foundation.identifiers import NO_SESSION, PartyId, RoundId, SessionId
from protocols.sums.plain import ClearInput
from protocols.sums.secagg.messages import MaskedInput
from protocols.transport.traffic import Direction
from secure_kg.attacks.uploads import Places, RowUpload, decoded_upload
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.messages import PackedRows, SharedRows, Welcome
from secure_kg.federation.plan.row_sum import Rows
from secure_kg.federation.plan.settings import RunConfig


@dataclass(slots=True)
class ServerRows:
    """What the server has of some rounds."""

    config: RunConfig
    rounds: frozenset[int]
    uploads: dict[int, dict[int, RowUpload]] = field(default_factory=dict)
    """By round and client."""
    means: dict[int, Rows] = field(default_factory=dict)
    """By round: the table [union, width]; rows that were not averaged stay as they were."""

    def observe(self, direction: Direction, peer: int, round: int, message: wire.Message) -> None:
        """Take one message that passes the server's end of the wire."""
        match message:
            case ClearInput() | MaskedInput() if message.purpose == "rows" and direction == "received":
                if round in self.rounds:
                    self.uploads.setdefault(round, {})[peer] = decoded_upload(self.config, peer, round, message)
            case SharedRows() | PackedRows() if direction == "sent" and len(message.averaged):
                newest = int(message.averaged.max())
                if newest in self.rounds and newest not in self.means:
                    self.means[newest] = message.rows.copy()

    def upload_of(self, client: int, round: int, places: Places) -> Rows | None:
        """The rows [places, width] that a client uploaded, for all the server can tell; None: it has none."""
        found = self.uploads.get(round, {}).get(client)
        return None if found is None else found.rows[places]

    def is_masked(self, round: int) -> bool:
        return any(upload.masked for upload in self.uploads.get(round, {}).values())


def rows_in_view(config: RunConfig, rounds: Collection[int], observations: Iterable[Observation]) -> ServerRows:
    """From a transcript."""
    found = ServerRows(config, frozenset(rounds))
    for seen in observations:
        found.observe(seen.direction, seen.peer, seen.round, seen.message)
    return found


class ServerTap:
    """The same, live: attached to the server's transport. The session is learned from the server's own greeting."""

    def __init__(self, rows: ServerRows) -> None:
        self._rows, self._session = rows, NO_SESSION

    def write(self, direction: Direction, peer: PartyId, round_id: RoundId, phase: str, frame: wire.Frame) -> None:
        for session in (self._session, NO_SESSION):
            try:
                envelope = wire.decode(frame, session=session)
            except DecodeError:
                continue
            if isinstance(envelope.message, Welcome) and direction == "sent":
                self._session = SessionId(envelope.message.session)
            self._rows.observe(direction, int(peer), int(envelope.round), envelope.message)
            return

    def close(self) -> None:
        """Nothing is held open."""

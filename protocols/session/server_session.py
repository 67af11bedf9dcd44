"""The server's end of a session: its conversation, who is present, how long it waits, and what a dropout means."""

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved, UnexpectedMessage
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.session.conversation import Conversation
from protocols.session.patience import Patience

M = TypeVar("M", bound=wire.Message)

OnDropout: TypeAlias = Callable[[Collection[PartyId], str], None]
"""Called with participants that missed the deadline of a step, or take no messages any more, and the step's name."""


@dataclass(frozen=True, slots=True)
class ServerSession:
    """What every protocol needs of the server's side. Sessions derived from one another share who is present."""

    conversation: Conversation
    attending: set[PartyId]
    """Live: dropouts leave it, and its owner may take them in again."""
    patience: Patience
    on_dropout: OnDropout
    only: frozenset[PartyId] | None = None
    """The clients that this session is restricted to; None: all."""
    on_opening: Callable[[], None] = lambda: None
    """Called before clients are asked to open a sum: from then on some may have noted over whom it was."""

    @property
    def present(self) -> frozenset[PartyId]:
        """Those who are present now, of the clients that this session is restricted to."""
        return frozenset(self.attending) if self.only is None else self.only & self.attending

    def with_patience(self, patience: Patience) -> "ServerSession":
        """The same session with other limits."""
        return replace(self, patience=patience)

    def among(self, parties: Collection[PartyId]) -> "ServerSession":
        """The same session restricted to `parties`, whoever of them is present."""
        only = frozenset(parties)
        return replace(self, only=only if self.only is None else only & self.only)

    def phase(self, round_id: RoundId, step: str) -> AbstractContextManager[None]:
        """Count the traffic of the block for this round and step."""
        return self.conversation.transport.phase(round_id, step)

    def dropout(self, parties: Collection[PartyId], step: str) -> None:
        """Report `parties`, if any, as dropouts of `step` and go on without them."""
        if parties:
            self.on_dropout(parties, step)
            self.attending.difference_update(parties)

    @contextmanager
    def bearing(self, party: PartyId) -> Iterator[None]:
        """What `party` has said is looked at in the block. Where the server outlives its clients, one that breaks the
        rules is cut off, and the block ends there: as if it had not answered."""
        try:
            yield
        except (PeerMisbehaved, UnexpectedMessage) as problem:
            self.conversation.bear(party, problem)

    def gather(self, expected: type[M], round_id: RoundId, step: str) -> dict[PartyId, M]:
        """One `expected` message from everybody present. Those who send none in time are reported as dropouts."""
        asked = self.present
        answers = dict(self.gather_each(asked, expected, round_id, step))
        self.dropout(asked - answers.keys(), step)
        return answers

    def gather_each(
        self,
        senders: Collection[PartyId],
        expected: type[M],
        round_id: RoundId,
        step: str,
        purpose: str | None = None,
    ) -> Iterator[tuple[PartyId, M]]:
        """`Conversation.gather_each` with this session's patience. The caller reports the dropouts."""
        return self.conversation.gather_each(senders, expected, round_id, self.patience, step, purpose)

    def broadcast(self, to: Collection[PartyId], message: wire.Message, round_id: RoundId, step: str) -> None:
        """The same message to those of `to` who are present. Those who take none are reported as dropouts.

        `PeerFailed` if one of these has said why.
        """
        lost = self.conversation.broadcast(self.present & frozenset(to), message, round_id)
        for party in sorted(lost):
            self.conversation.hear_out(party)
        self.dropout(lost, step)

"""A client's side of a batch that CrypTen computes, and the asker's, who may be no client.

`protocols.scores.crypten` has the statement of parties, adversary and leakage. This module imports torch when a group
is formed, not before.
"""

import secrets
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from protocols.foundation.errors import PeerMisbehaved, SumAbandoned
from protocols.foundation.identifiers import PartyId
from protocols.foundation.spent import Spent
from protocols.holders.interface import HolderClient
from protocols.primitives.keys import AgreementKey
from protocols.primitives.prg import KEY_BYTES
from protocols.scores import asking, counting
from protocols.scores.asking import SealedChannels
from protocols.scores.crypten import binding, rendezvous
from protocols.scores.crypten.crypten_import import load_crypten
from protocols.scores.crypten.messages import (
    DIGEST_BYTES,
    AnswerShares,
    GroupAnswer,
    GroupFormed,
    JoinGroup,
    for_asker_bytes,
    sealed_words_bytes,
)
from protocols.scores.crypten.position_keys import PositionKeys
from protocols.scores.crypten.rendezvous import RankKeys, Seat
from protocols.scores.interface import (
    Answer,
    EncodedScores,
    ScoreClient,
    ScoreQueries,
    Scores,
    ScoringReport,
    encode,
)
from protocols.scores.messages import PURPOSE
from protocols.scores.ranking import Ranking
from protocols.scores.terms import ScoreTerms
from protocols.session.client_session import ClientSession
from protocols.session.conversation import MAX_REASON, Abandon

Words = npt.NDArray[np.int64]
MayOpen = Callable[[frozenset[PartyId]], None]


@dataclass(frozen=True, slots=True)
class GroupCost:
    """What a client's last group cost it, outside of the toolkit's own transport."""

    seconds: float
    """Since the ranks have met."""
    waiting_seconds: float
    rounds: int
    sent_bytes: int


@dataclass(frozen=True, slots=True)
class _Part:
    """What a client computes with in one batch."""

    keys: PositionKeys
    encoded: EncodedScores = field(repr=False)
    alike: bytes = field(repr=False)
    """What all clients of a group were asked (`asking.agreed`)."""
    may_open: MayOpen | None = None


@dataclass(frozen=True, slots=True)
class _Joined:
    """A client's place in a group that is formed."""

    participants: tuple[PartyId, ...]
    seat: Seat
    keys: RankKeys


class CryptenScoreClient(ScoreClient):
    """`channels`: to the other clients and the asker; `holders`: how holders are counted."""

    def __init__(self, channels: SealedChannels, holders: HolderClient) -> None:
        require_own_process()
        load_crypten()
        self._channels, self._holders = channels, holders
        self.last_group: GroupCost | None = None

    def ask(self, session: ClientSession, terms: ScoreTerms, queries: bytes, own: Scores) -> Answer:
        spent, keys = Spent(), PositionKeys(terms)
        with spent.measure():
            encoded = encode(own, terms)
        drawn = asking.ask(session, self._channels, terms, queries)
        alike = asking.agreed(drawn[terms.scorers[0]], session, terms)
        computed: tuple[tuple[PartyId, ...], Words] | None = None
        if terms.asker_is_client:
            computed = self._compute(session, _Part(keys, encoded, alike), spent)
        session.conversation.admit(for_asker_bytes(terms))
        with session.phase(terms.round, binding.SHARES):
            shares = session.receive(GroupAnswer, terms.round, PURPOSE)
        with spent.measure():
            participants = tuple(PartyId(party) for party in shares.participants)
            binding.require_participants(participants, terms)
            if computed is not None and computed[0] != participants:
                raise PeerMisbehaved("the server names another group than it has formed")
            words = self._opened(shares, participants, terms)
            if computed is not None:
                words = words ^ computed[1]
            scorers = frozenset(int(party) for party in participants if party != terms.asker)
            ranking = Ranking(keys.read(words), scorers)
        return Answer(ranking, ScoringReport(encoded.clipped, encoded.max_error, spent))

    def score(self, session: ClientSession, terms: ScoreTerms, scoring: ScoreQueries) -> ScoringReport:
        spent, keys = Spent(), PositionKeys(terms)
        asked = asking.asked(session, self._channels, terms)
        counting.prepare(session, self._holders, terms)
        scores = scoring(asked.queries)
        counted = counting.count(session, self._holders, terms, scores.held)
        with spent.measure():
            encoded = encode(scores.only(counted.enough), terms)
        alike = asking.agreed(asked.secrets, session, terms)
        participants, words = self._compute(session, _Part(keys, encoded, alike, counted.may_open), spent)
        with spent.measure():
            shares = binding.of_group(terms, participants) + words.astype("<i8").tobytes()
            sealed = self._channels.seal_for(terms.asker, binding.answer_use(terms), shares)
        with session.phase(terms.round, binding.SHARES):
            session.send(AnswerShares(PURPOSE, sealed), terms.round)
        return ScoringReport(encoded.clipped, encoded.max_error, spent)

    def _compute(self, session: ClientSession, part: _Part, spent: Spent) -> tuple[tuple[PartyId, ...], Words]:
        """Join the group of this batch: who computes, and this client's shares of the answer words."""
        terms = part.keys.terms
        with closing(rendezvous.listen()) as listener:
            joined = self._join(session, terms, part.alike, listener)
            try:
                if part.may_open is not None:
                    part.may_open(frozenset(terms.scorers) - set(joined.participants))
                with spent.measure():
                    words = self._in_group(joined, listener if joined.seat.rank == 0 else None, part)
            except SumAbandoned as problem:
                session.send(Abandon(PURPOSE, str(problem)[:MAX_REASON]), terms.round)
                raise
        if self.last_group is not None:
            spent.seconds -= self.last_group.waiting_seconds
        return joined.participants, words

    def _join(self, session: ClientSession, terms: ScoreTerms, alike: bytes, listener: socket.socket) -> _Joined:
        """Say where a group could meet, hear who computes, and open what the ring needs.

        Everybody tells everybody what it was asked. A client computes with no one that was asked something else: if it
        asked its neighbours in the ring alone, the asker and a scorer on its side could stand around a victim.
        """
        me, use, address = session.party, binding.ring_use(terms), listener.getsockname()
        dealt = AgreementKey()
        drawn = {peer: secrets.token_bytes(KEY_BYTES) for peer in terms.clients if peer in self._channels.peers}
        sealed = {int(peer): self._channels.seal_for(peer, use, alike + key) for peer, key in drawn.items()}
        with session.phase(terms.round, binding.JOIN):
            session.send(JoinGroup(PURPOSE, dealt.public, sealed, *address), terms.round)
            formed = session.receive(GroupFormed, terms.round, PURPOSE)
        participants = tuple(PartyId(party) for party in formed.participants)
        binding.require_participants(participants, terms)
        if me not in participants or not {*participants} <= {me, *drawn}:
            raise PeerMisbehaved("a group without this client, or with one that it has no channel to")
        rank = participants.index(me)
        if rank == 0 and (formed.host, formed.port) != address:
            raise PeerMisbehaved("a group that meets elsewhere than at its first participant's address")
        previous, following = participants[rank - 1], participants[(rank + 1) % len(participants)]
        if set(formed.sealed) != set(formed.participants) - {int(me)}:
            raise PeerMisbehaved("a group in which not everybody has said what it was asked")
        ring_key = {peer: self._ring_key(peer, use, formed.sealed[int(peer)], alike) for peer in {*participants} - {me}}
        keys = RankKeys(
            asking.key_of(ring_key[previous], session, terms, previous, binding.RING),
            asking.key_of(drawn[following], session, terms, me, binding.RING),
            secrets.token_bytes(KEY_BYTES),
            binding.dealer_key(dealt.agree(formed.public), session.conversation.session, terms, me),
        )
        stall = max(1.0, min(rendezvous.STALL, session.deadline.remaining()))
        return _Joined(participants, Seat(rank, len(participants), formed.host, formed.port, stall), keys)

    def _ring_key(self, peer: PartyId, use: str, sealed: bytes, alike: bytes) -> bytes:
        opened = self._channels.open_from(peer, use, sealed)
        if opened[:DIGEST_BYTES] != alike or len(opened) != DIGEST_BYTES + KEY_BYTES:
            raise PeerMisbehaved(f"client {peer} joins under other terms, or was asked something else")
        return opened[DIGEST_BYTES:]

    def _in_group(self, joined: _Joined, listener: socket.socket | None, part: _Part) -> Words:
        """`SumAbandoned` if the group breaks: what was opened in it was masked, and the next one has other masks."""
        from protocols.scores.crypten.group import computing
        from protocols.scores.crypten.selection import Selection

        self.last_group = None
        seat = joined.seat
        try:
            with computing(seat, joined.keys, listener) as traffic:
                words = Selection(part.keys, seat.rank, seat.computing).answer_words(part.encoded)
        except RuntimeError as problem:  # of torch.distributed, which has no narrower one for all its failures
            raise SumAbandoned(f"the CrypTen group broke: {rendezvous.one_line(problem)}") from problem
        self.last_group = GroupCost(traffic.seconds, traffic.waiting_seconds, traffic.rounds, traffic.sent_bytes)
        return words

    def _opened(self, shares: GroupAnswer, participants: Sequence[PartyId], terms: ScoreTerms) -> Words:
        """The xor of the scorers' shares [queries, answers]."""
        scorers = [party for party in participants if party != terms.asker]
        if set(shares.sealed) != set(scorers):
            raise PeerMisbehaved("shares of other scorers than have computed")
        answers = min(terms.top, terms.positions)
        words: Words = np.zeros((terms.queries, answers), dtype=np.int64)
        group = binding.of_group(terms, participants)
        for scorer in scorers:
            sealed = shares.sealed[int(scorer)]
            if len(sealed) != sealed_words_bytes(terms):
                raise PeerMisbehaved(f"client {scorer} sends shares of another batch")
            opened = self._channels.open_from(scorer, binding.answer_use(terms), sealed)
            if opened[:DIGEST_BYTES] != group:
                raise PeerMisbehaved(f"client {scorer} has computed in another group")
            words ^= np.frombuffer(opened, dtype="<i8", offset=DIGEST_BYTES).reshape(words.shape)
        return words


def require_own_process() -> None:
    """`RuntimeError` where several parties may share a process: CrypTen's state belongs to the process."""
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("the backend 'crypten' needs a process per client: run it under mpirun, not in threads")

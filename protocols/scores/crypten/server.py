"""The server's side of a batch that CrypTen computes: it forms the group, has its dealer join it, and carries shares.

This module and all that it imports need neither torch nor CrypTen: the dealer is a process of its own.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from itertools import permutations

from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import PartyId
from protocols.holders.interface import HolderServer
from protocols.primitives.keys import AgreementKey
from protocols.scores import asking, counting
from protocols.scores.crypten import binding
from protocols.scores.crypten.crypten_import import INSTALL
from protocols.scores.crypten.dealing import Dealing
from protocols.scores.crypten.messages import AnswerShares, GroupAnswer, GroupFormed, JoinGroup, shares_bytes
from protocols.scores.crypten.position_keys import PositionKeys
from protocols.scores.interface import ScoreServer, Served
from protocols.scores.messages import PURPOSE
from protocols.scores.terms import ScoreTerms
from protocols.session.server_session import ServerSession

_LAST_WORD = 30.0
"""Seconds that the dealer may take to say that it is done, once all shares are here."""


class CryptenScoreServer(ScoreServer):
    def __init__(self, holders: HolderServer) -> None:
        super().__init__()
        if find_spec("crypten") is None:
            raise ImportError(f"CrypTen is not installed: {INSTALL}", name="crypten")
        self._holders, self._dealing = holders, Dealing()

    def serve(self, session: ServerSession, terms: ScoreTerms) -> Served:
        PositionKeys(terms)  # refuses what does not fit
        self._dealing.start()
        try:
            return self._serve(session, terms)
        except BaseException:
            self._dealing.stop()
            raise

    def _serve(self, session: ServerSession, terms: ScoreTerms) -> Served:
        asking.relay(session, terms)
        among = session.among(terms.scorers)
        counting.serve_prepare(among, self._holders, terms)
        counting.serve(among, self._holders, terms)
        participants = self._form(session.among(terms.clients), terms)
        scorers = frozenset(participants) - {terms.asker}
        shares = self._shares(session, terms, scorers)
        took = self._dealing.done(_LAST_WORD)
        self.spent.cpu_seconds += took.cpu_seconds
        self.spent.seconds += took.cpu_seconds  # the rest of its time it waits for requests
        with session.phase(terms.round, binding.SHARES):
            message = GroupAnswer(PURPOSE, [int(party) for party in participants], shares)
            session.broadcast([terms.asker], message, terms.round, PURPOSE)
        if terms.asker not in session.present:
            raise SumAbandoned("the asker has dropped out")
        return Served(scorers)

    def _form(self, session: ServerSession, terms: ScoreTerms) -> tuple[PartyId, ...]:
        """A group of all clients that join in time, in the order of their ranks."""
        asked = session.present
        with session.phase(terms.round, binding.JOIN):
            joining = dict(session.gather_each(asked, JoinGroup, terms.round, binding.JOIN, PURPOSE))
            session.dropout(asked - joining.keys(), binding.JOIN)
            participants = _ring(joining, terms)
            first = joining[participants[0]]
            dealt, here = AgreementKey(), session.conversation.session
            keys = [
                binding.dealer_key(dealt.agree(joining[party].public), here, terms, party) for party in participants
            ]
            self._dealing.deal(first.host, first.port, keys)
            names = [int(party) for party in participants]
            messages = {
                party: GroupFormed(
                    PURPOSE,
                    names,
                    dealt.public,
                    {int(peer): joining[peer].sealed[int(party)] for peer in participants if peer != party},
                    first.host,
                    first.port,
                )
                for party in participants
            }
            lost = session.conversation.deliver(messages, terms.round)
            session.dropout(lost, binding.JOIN)
        if lost:
            raise SumAbandoned(f"{len(lost)} clients dropped out as the CrypTen group was formed")
        return participants

    @staticmethod
    def _shares(session: ServerSession, terms: ScoreTerms, scorers: frozenset[PartyId]) -> dict[int, bytes]:
        session.conversation.admit(shares_bytes(terms))
        with session.phase(terms.round, binding.SHARES):
            shares = dict(session.gather_each(scorers, AnswerShares, terms.round, binding.SHARES, PURPOSE))
        session.dropout(scorers - shares.keys(), binding.SHARES)
        if len(shares) < len(scorers):
            raise SumAbandoned(f"{len(scorers) - len(shares)} clients dropped out of the CrypTen group")
        return {int(party): message.sealed for party, message in shares.items()}


def _ring(joining: Mapping[PartyId, JoinGroup], terms: ScoreTerms) -> tuple[PartyId, ...]:
    """Who computes, by rank. `SumAbandoned` if too few do, or one lacks the channel to another."""
    participants = tuple(sorted(joining))
    if terms.asker_is_client and terms.asker not in joining:
        raise SumAbandoned("the asker has dropped out")
    scorers = len(joining.keys() & frozenset(terms.scorers))
    if scorers < binding.fewest(terms):
        raise SumAbandoned(f"{scorers} scorers have joined the CrypTen group, too few")
    for party, peer in permutations(participants, 2):
        if int(peer) not in joining[party].sealed:
            raise SumAbandoned(f"client {party} has no channel to client {peer}")
    return participants

"""A client's sums of one session: channels to the other clients, over which masked sums begin.

Parties, adversary, what is revealed, assumed and not covered: see the package, `protocols.sums.secagg`.

    start() -> AdvertiseChannel        receive(ChannelDirectory)        begin(...) -> SecAggClient, once per sum
"""

from collections.abc import Collection

from protocols.foundation.errors import PeerMisbehaved, UnexpectedMessage
from protocols.foundation.identifiers import SETUP, PartyId, RoundId, SessionId
from protocols.session.channels import ClientChannels
from protocols.session.credentials import Credentials
from protocols.sums.secagg.client import SecAggClient
from protocols.sums.secagg.openings import Openings
from protocols.sums.secagg.params import SumParameters
from protocols.sums.secagg.terms import BoundTerms
from protocols.sums.terms import Layout, SumTerms


class SecAggSession(ClientChannels):
    """One client in one session. `clients` and `credentials` are its own configuration, never the server's word."""

    def __init__(
        self,
        party: PartyId,
        clients: Collection[PartyId],
        session: SessionId,
        credentials: Credentials | None = None,
        openings: Openings | None = None,
        greeting: bytes = b"",
    ) -> None:
        super().__init__(party, clients, session, credentials, greeting)
        self._openings = openings if openings is not None else Openings()
        self._last_round = SETUP
        self._purposes_of_round: set[str] = set()

    def begin(self, terms: SumTerms[Layout], parameters: SumParameters) -> SecAggClient:
        """This client's part in one sum. Once per round and purpose, and never for an earlier round."""
        if self._transcript is None or self._channels is None:
            raise UnexpectedMessage("a sum before the set-up is complete")
        members = frozenset(terms.participants)
        if self.party not in members or len(members) != len(terms.participants) or not members <= self._clients:
            raise PeerMisbehaved("the participants are not a set of this session's clients with me")
        if parameters.participants != len(members):
            raise ValueError(f"parameters for {parameters.participants} participants, but there are {len(members)}")
        if self._credentials is not None and not parameters.complete:
            raise ValueError("signed survivors are the whole sum's: an active server needs the complete graph")
        self._note(*terms.key)
        bound = BoundTerms(self._session, self._transcript, parameters, terms)
        return SecAggClient(self.party, bound, self._channels, self._credentials, self._openings)

    def _note(self, round_id: RoundId, purpose: str) -> None:
        """`PeerMisbehaved` for a sum that has begun before."""
        if round_id < self._last_round or (round_id == self._last_round and purpose in self._purposes_of_round):
            raise PeerMisbehaved(f"a second sum '{purpose}' for round {round_id}")
        if round_id > self._last_round:
            self._last_round, self._purposes_of_round = round_id, set()
        self._purposes_of_round.add(purpose)

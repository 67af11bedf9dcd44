"""A client's sums of one session: channels to the other clients, over which masked sums begin.

Parties, adversary, what is revealed, assumed and not covered: see the package, `protocols.sums.secagg`.

    start() -> AdvertiseChannel        receive(ChannelDirectory)        begin(...) -> SecAggClient, once per sum
                                                                        advertise(...) -> AdvertiseKeys, before it
"""

from collections.abc import Collection

from protocols.foundation.errors import PeerMisbehaved, UnexpectedMessage
from protocols.foundation.identifiers import SETUP, PartyId, RoundId, SessionId
from protocols.session.channels import ClientChannels
from protocols.session.credentials import Credentials
from protocols.session.pair_secrets import PairSecrets
from protocols.sums.secagg.client import SecAggClient
from protocols.sums.secagg.messages import AdvertiseKeys
from protocols.sums.secagg.openings import Openings
from protocols.sums.secagg.params import SumParameters
from protocols.sums.secagg.states import KeyAhead
from protocols.sums.secagg.terms import BoundTerms
from protocols.sums.terms import Layout, SumKey, SumTerms


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
        self._ahead: dict[SumKey, KeyAhead] = {}
        """Mask keys that were advertised for sums that have not begun."""

    def advertise(self, terms: SumTerms[Layout], parameters: SumParameters) -> AdvertiseKeys:
        """Advertise the mask key of a sum that is to come. Only its public terms count: nothing else is known yet.

        The key is used for this very sum: `begin` throws away what was advertised for one that did not come.
        """
        bound = self._bound(terms, parameters)
        if terms.key in self._ahead or self._has_begun(*terms.key):
            raise ValueError(f"the key of sum '{terms.purpose}' of round {terms.round} is advertised twice")
        client = SecAggClient(self.party, bound, self._pairs(), self._credentials)
        advert = client.start()
        self._ahead[terms.key] = client.key_ahead()
        return advert

    def forget_ahead(self) -> None:
        """Forget the keys of sums to come: the server has gone on without this client, and expects others."""
        self._ahead = {}

    def begin(self, terms: SumTerms[Layout], parameters: SumParameters) -> SecAggClient:
        """This client's part in one sum. Once per round and purpose, and never for an earlier round."""
        bound = self._bound(terms, parameters)
        self._note(*terms.key)
        running = SecAggClient(self.party, bound, self._pairs(), self._credentials, self._openings)
        ahead = self._ahead.pop(terms.key, None)
        self._ahead = {key: one for key, one in self._ahead.items() if key[0] >= terms.round}
        if ahead is not None:
            running.advertised(ahead)
        return running

    def _pairs(self) -> PairSecrets:
        if self._channels is None:
            raise UnexpectedMessage("a sum before the set-up is complete")
        return self._channels

    def _bound(self, terms: SumTerms[Layout], parameters: SumParameters) -> BoundTerms:
        """`PeerMisbehaved` for a sum that this client takes no part in."""
        if self._transcript is None or self._channels is None:
            raise UnexpectedMessage("a sum before the set-up is complete")
        members = frozenset(terms.participants)
        if self.party not in members or len(members) != len(terms.participants) or not members <= self._clients:
            raise PeerMisbehaved("the participants are not a set of this session's clients with me")
        if parameters.participants != len(members):
            raise ValueError(f"parameters for {parameters.participants} participants, but there are {len(members)}")
        if self._credentials is not None and not parameters.complete:
            raise ValueError("signed survivors are the whole sum's: an active server needs the complete graph")
        return BoundTerms(self._session, self._transcript, parameters, terms)

    def _has_begun(self, round_id: RoundId, purpose: str) -> bool:
        return round_id < self._last_round or (round_id == self._last_round and purpose in self._purposes_of_round)

    def _note(self, round_id: RoundId, purpose: str) -> None:
        """`PeerMisbehaved` for a sum that has begun before."""
        if self._has_begun(round_id, purpose):
            raise PeerMisbehaved(f"a second sum '{purpose}' for round {round_id}")
        if round_id > self._last_round:
            self._last_round, self._purposes_of_round = round_id, set()
        self._purposes_of_round.add(purpose)

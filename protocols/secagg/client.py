"""A client of the pairwise-masked sum: pure steps on one object, one object per session.

    start() -> AdvertiseKeys        receive(KeyDirectory)        mask(...) -> MaskedInput, once per round and purpose

Whatever contradicts the client's own configuration or record raises and leaves the client aborted: it answers nothing
afterwards, and its keys are forgotten.
"""

from collections.abc import Collection
from enum import Enum
from typing import Final

from protocols.errors import PeerMisbehaved, ProtocolError, UnexpectedMessage
from protocols.identifiers import SETUP, PartyId, RoundId, SessionId
from protocols.primitives.group import Ring, RingVector
from protocols.primitives.keys import AgreementKey, KeyContext, derive_key
from protocols.primitives.prg import add_keystream, subtract_keystream
from protocols.secagg.messages import AdvertiseKeys, KeyDirectory, MaskedInput

PROTOCOL: Final = "secure-kg/secagg"
VERSION: Final = 1
MIN_PARTICIPANTS: Final = 2


class State(Enum):
    NEW = "new"
    ADVERTISED = "advertise keys"
    READY = "masked input"
    ABORTED = "aborted"


class SecAggClient:
    """`clients` are all clients of the session and `min_participants` the fewest a sum may have: this client's own
    configuration, never the server's word."""

    def __init__(
        self,
        party: PartyId,
        clients: Collection[PartyId],
        session: SessionId,
        min_participants: int = MIN_PARTICIPANTS,
    ) -> None:
        if party not in clients:
            raise ValueError("a client must be among the clients of its session")
        if min_participants < MIN_PARTICIPANTS:
            raise ValueError("a sum of fewer than two inputs hides nothing")
        self.party = party
        self.state = State.NEW
        self._clients = frozenset(clients)
        self._session = session
        self._min_participants = min_participants
        self._key: AgreementKey | None = AgreementKey()
        self._secrets: dict[PartyId, bytes] = {}
        self._last_round = SETUP
        self._purposes_of_round: set[str] = set()

    def __repr__(self) -> str:
        return f"SecAggClient(party={self.party}, state={self.state.value})"

    def start(self) -> AdvertiseKeys:
        if self.state is not State.NEW or self._key is None:
            raise UnexpectedMessage(f"start in state '{self.state.value}': one object is one session")
        self.state = State.ADVERTISED
        return AdvertiseKeys(self._key.public)

    def receive(self, directory: KeyDirectory) -> None:
        """Agree with every peer. The directory must name exactly the configured clients, each with a key of its own."""
        if self.state is not State.ADVERTISED or self._key is None:
            raise self._aborted(UnexpectedMessage(f"a key directory in state '{self.state.value}'"))
        keys = {PartyId(party): key for party, key in directory.mask_keys.items()}
        if keys.keys() != self._clients:
            raise self._aborted(PeerMisbehaved("the key directory does not name exactly the configured clients"))
        if keys[self.party] != self._key.public:
            raise self._aborted(PeerMisbehaved("the key directory has another key for this client"))
        if len(set(keys.values())) != len(keys):
            raise self._aborted(PeerMisbehaved("two clients have the same key in the key directory"))
        try:
            self._secrets = {peer: self._key.agree(key) for peer, key in keys.items() if peer != self.party}
        except PeerMisbehaved as problem:
            raise self._aborted(problem) from None
        self._key = None  # all agreements are made: the private key has no further use
        self.state = State.READY

    def mask(
        self, round_id: RoundId, purpose: str, participants: Collection[PartyId], ring: Ring, vector: RingVector
    ) -> MaskedInput:
        """FedR appendix C: t_u = s_u + sum over v > u of s_{u,v} - sum over v < u of s_{v,u}.

        `vector` is masked in place. Cost: one keystream of its length per other participant.
        """
        if self.state is not State.READY:
            raise UnexpectedMessage(f"an input in state '{self.state.value}'")
        members = frozenset(participants)
        if self.party not in members or len(members) != len(participants) or not members <= self._clients:
            raise self._aborted(PeerMisbehaved("the participants are not a set of this session's clients with me"))
        if len(members) < self._min_participants:
            raise self._aborted(PeerMisbehaved(f"{len(members)} participants, fewer than {self._min_participants}"))
        self._use_once(round_id, purpose)
        for peer in sorted(members - {self.party}):
            key = derive_key(self._secrets[peer], self._context(round_id, purpose, peer, ring))
            if self.party < peer:
                add_keystream(key, vector, ring)
            else:
                subtract_keystream(key, vector, ring)
        return MaskedInput(purpose, vector)

    def abort(self) -> None:
        """Forget every secret. The object answers nothing from now on."""
        self.state = State.ABORTED
        self._key = None
        self._secrets = {}

    def _use_once(self, round_id: RoundId, purpose: str) -> None:
        # A second input under the same masks would show the server the difference of the two.
        if round_id < self._last_round or (round_id == self._last_round and purpose in self._purposes_of_round):
            raise self._aborted(PeerMisbehaved(f"a second input '{purpose}' for round {round_id}"))
        if round_id > self._last_round:
            self._last_round, self._purposes_of_round = round_id, set()
        self._purposes_of_round.add(purpose)

    def _context(self, round_id: RoundId, purpose: str, peer: PartyId, ring: Ring) -> KeyContext:
        low, high = sorted((self.party, peer))
        return KeyContext(
            PROTOCOL, VERSION, self._session, round_id, low, high, purpose=f"pairwise-mask/{ring.bits}/{purpose}"
        )

    def _aborted(self, problem: ProtocolError) -> ProtocolError:
        self.abort()
        return problem

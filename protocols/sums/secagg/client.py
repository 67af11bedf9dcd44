"""A client of one masked sum: Bonawitz et al. 2017, figure 4, from the client's side.

Parties, adversary, what is revealed, assumed and not covered: see the package, `protocols.sums.secagg`.

One object is one sum. A handler takes a state and gives the next one; every state refuses every message it does not
wait for; whatever contradicts the client's own record ends in `Aborted(reason)`, after which it answers nothing and
holds no secret. If it is the word of certain peers that does, the error names them (`refusals`): that one sum is
refused, and no other.

    start() -> AdvertiseKeys, or advertised(key) for a key that was sent before the sum began
    receive(KeyDirectory) -> ShareKeys
    receive(EncryptedShares) -> None
    set_input(vector) -> MaskedInput
    receive(Survivors) -> UnmaskShares, or SurvivorSignature against an active server
    receive(SignedSurvivors) -> UnmaskShares

What a client gives away about a peer follows from its own record of who sent it shares: for each of them a share of the
mask key or a share of the self-mask seed, once, and only if enough of them survive. It never gives both, and about
itself only the seed.
"""

import secrets
from collections.abc import Sequence
from functools import cached_property

from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved, ProtocolError, UnexpectedMessage
from protocols.foundation.identifiers import SETUP, PartyId
from protocols.primitives.group import GroupVector
from protocols.primitives.keys import AgreementKey, derive_key
from protocols.primitives.prg import KEY_BYTES, combine_keystreams
from protocols.primitives.shamir import SHARE_BYTES, split
from protocols.session.credentials import Credentials
from protocols.session.pair_secrets import PairSecrets
from protocols.sums.secagg.messages import (
    STATE_BYTES,
    AdvertiseKeys,
    EncryptedShares,
    KeyDirectory,
    MaskedInput,
    ShareKeys,
    SignedSurvivors,
    Survivors,
    SurvivorSignature,
    UnmaskShares,
)
from protocols.sums.secagg.openings import Opening, Openings
from protocols.sums.secagg.refusals import not_opened, require_fit
from protocols.sums.secagg.states import (
    Aborted,
    Advertised,
    Answered,
    Held,
    HeldShares,
    KeyAhead,
    Masked,
    New,
    Ready,
    Shared,
    Signed,
    State,
)
from protocols.sums.secagg.terms import BoundTerms


class SecAggClient:
    """`channels` are those of the session this sum belongs to (`SecAggSession.begin` makes the object)."""

    def __init__(
        self,
        party: PartyId,
        terms: BoundTerms,
        channels: PairSecrets,
        credentials: Credentials | None,
        openings: Openings | None = None,
    ) -> None:
        self.party = party
        self.state: State = New()
        self._terms = terms
        self._channels: PairSecrets | None = channels
        self._credentials = credentials
        self._openings = openings if openings is not None else Openings()

    @cached_property
    def _neighbours(self) -> frozenset[PartyId]:
        """Not needed for an advert ahead."""
        return frozenset(self._terms.graph.neighbours(self.party))

    @cached_property
    def _states(self) -> dict[PartyId, bytes]:
        """Its own commitment, as it is announced, and those of the others as they become known."""
        return {self.party: self._announced_state()}

    def __repr__(self) -> str:
        return f"SecAggClient(party={self.party}, state={self.state.name})"

    def start(self) -> AdvertiseKeys:
        """Advertise a mask key that is used for this sum alone."""
        self._require_new()
        mask_key = AgreementKey.from_secret(secrets.token_bytes(KEY_BYTES))
        self.state = Advertised(mask_key)
        public, signature = mask_key.public, b""
        if self._credentials is not None:
            signature = self._credentials.sign(self._terms.advert_statement(self.party, public))
        return AdvertiseKeys(self._terms.sum.purpose, public, b"", signature)

    def key_ahead(self) -> KeyAhead:
        """The key that was advertised, for the object that is this client in the sum once it begins. This one is over.

        All else of a client is made when its sum begins: only the public terms are known before.
        """
        if not isinstance(self.state, Advertised):
            raise self._aborted(UnexpectedMessage(f"a key ahead in state '{self.state.name}'"))
        ahead = KeyAhead(self.state.mask_key, self._terms.digest)
        self.abort("advertised ahead")
        return ahead

    def advertised(self, ahead: KeyAhead) -> None:
        """Begin with a key that has been advertised: the directory is what comes next."""
        self._require_new()
        if ahead.terms != self._terms.digest:
            raise self._aborted(UnexpectedMessage("a mask key that was advertised for another sum"))
        self.state = Advertised(ahead.mask_key)

    def _require_new(self) -> None:
        if not isinstance(self.state, New):
            raise self._aborted(UnexpectedMessage(f"start in state '{self.state.name}': one object is one sum"))

    def receive(self, message: wire.Message) -> wire.Message | None:
        """The answer to `message`, if there is one. Raises, and is aborted, unless the state waits for it."""
        try:
            match self.state, message:
                case (_, KeyDirectory() | EncryptedShares() | Survivors() | SignedSurvivors()) if (
                    message.purpose != self._terms.sum.purpose
                ):
                    raise PeerMisbehaved("a message for another sum")
                case Advertised() as state, KeyDirectory():
                    return self._share_keys(state, message)
                case Shared() as state, EncryptedShares():
                    self._keep_shares(state, message)
                    return None
                case Masked() as state, Survivors():
                    return self._answer_survivors(state, message)
                case Signed() as state, SignedSurvivors():
                    return self._answer_signatures(state, message)
                case _:
                    raise UnexpectedMessage(f"{type(message).__name__} in state '{self.state.name}'")
        except ProtocolError as problem:
            raise self._aborted(problem) from None

    def missing_with(self, message: Survivors) -> frozenset[PartyId]:
        """The clients that are not in the sum, as far as this client knows and if the list is true: the dropouts that
        the server names, and those with whom this client shares no masks."""
        held = self.state.held.keys() if isinstance(self.state, Masked) else frozenset[PartyId]()
        return self._neighbours - (held - {PartyId(party) for party in message.dropped})

    def require_announced(self, message: Survivors) -> None:
        """`SumAbandoned` if others have announced an opening that this one would not fit."""
        self._openings.require_announced(self._opening(frozenset(self._states) - self.missing_with(message)))

    def set_input(self, vector: GroupVector, more_masks: Sequence[bytes] = ()) -> MaskedInput:
        """y_u = x_u + PRG(b_u) + sum over v > u of PRG(s_uv) - sum over v < u of PRG(s_uv), in place on `vector`.

        Cost: one keystream of its length for the self mask and one per neighbour that shared its keys. `more_masks`:
        keys of further keystreams that are part of the input as far as this protocol goes, and so stay on the sum.
        """
        state = self.state
        if not isinstance(state, Ready):
            raise self._aborted(UnexpectedMessage(f"an input in state '{state.name}'"))
        layout = self._terms.sum.layout
        layout.group.require(vector, layout.entries)
        self._openings.may_come(self._opening(frozenset({self.party, *state.held})), self.party)
        self.state = Masked(state.own_seed_share, state.held)
        added = [*more_masks, state.self_mask, *(key for peer, key in state.masks.items() if self.party < peer)]
        subtracted = [key for peer, key in state.masks.items() if self.party > peer]
        combine_keystreams(vector, layout.group, added, subtracted)
        sent, peers = layout.group.to_wire(vector), self._terms.peers_digest(self.party, state.masks.keys())
        return MaskedInput(self._terms.sum.purpose, sent, peers)

    def abort(self, reason: str) -> None:
        """Forget every secret of this sum. The object answers nothing from now on."""
        self.state = Aborted(reason)
        self._channels = None  # the session's own record; other sums go on with it

    def _share_keys(self, state: Advertised, directory: KeyDirectory) -> ShareKeys:
        """Figure 4, round 1. Cost: one agreement and one encryption per neighbour."""
        keys = {PartyId(party): key for party, key in directory.mask_keys.items()}
        if not keys.keys() <= self._neighbours:
            raise PeerMisbehaved("the key directory names a client that is no neighbour")
        if not all(peer in self._session_channels() for peer in keys):
            raise PeerMisbehaved("the key directory names a client without a channel")
        if len({*keys.values(), state.mask_key.public}) != len(keys) + 1:
            raise PeerMisbehaved("two clients have the same key in the key directory")
        self._require_enough(len(keys) + 1, "advertised keys")
        agreed = dict[PartyId, bytes]()

        def agree(peer: PartyId) -> None:
            if self._credentials is not None:
                statement = self._terms.advert_statement(peer, keys[peer])
                self._credentials.check(statement, directory.signatures.get(peer, b""))
            agreed[peer] = state.mask_key.agree(keys[peer])

        require_fit(keys, agree)
        mask_keys = keys | {self.party: state.mask_key.public}
        seed = secrets.token_bytes(KEY_BYTES)
        holders = sorted(mask_keys)
        threshold = self._terms.parameters.threshold
        mask_shares = split(state.mask_key.secret_for_sharing(), holders, threshold)
        seed_shares = split(seed, holders, threshold)
        sealed = {int(peer): self._seal(peer, mask_keys, mask_shares[peer] + seed_shares[peer]) for peer in agreed}
        self.state = Shared(mask_keys, agreed, seed, seed_shares[self.party])
        mine, signature = self._states[self.party], b""
        if self._credentials is not None:
            signature = self._credentials.sign(self._terms.state_statement(self.party, mask_keys[self.party], mine))
        commitment = self._terms.seed_commitment(self.party, seed)
        return ShareKeys(self._terms.sum.purpose, sealed, commitment, mine, signature)

    def _keep_shares(self, state: Shared, message: EncryptedShares) -> None:
        """Figure 4, round 2. Whoever's shares cannot be opened here could not be recovered later: no input is given."""
        sealed = {PartyId(party): entry for party, entry in message.sealed.items()}
        mask_keys, states = state.mask_keys, {peer: message.states[int(peer)] for peer in sealed}
        if self.party in sealed or not sealed.keys() <= mask_keys.keys():
            raise PeerMisbehaved("shares of a client that has advertised no key")
        self._require_enough(len(sealed) + 1, "shared keys")
        held: Held = {}

        def hold(peer: PartyId) -> None:
            if self._credentials is not None:
                statement = self._terms.state_statement(peer, mask_keys[peer], states[peer])
                self._credentials.check(statement, message.signatures.get(int(peer), b""))
            held[peer] = self._open(peer, mask_keys, states[peer], sealed[peer])

        require_fit(sealed, hold)
        self._states.update(states)
        masks = {
            peer: derive_key(state.agreed[peer], self._terms.pairwise_context(self.party, peer, mask_keys))
            for peer in held
        }
        self_mask = derive_key(state.seed, self._terms.self_mask_context(self.party))
        self.state = Ready(masks, self_mask, state.own_seed_share, held)

    def _answer_survivors(self, state: Masked, message: Survivors) -> UnmaskShares | SurvivorSignature:
        """Figure 4, rounds 3 and 4: check the list against the own record, then answer once."""
        dropped = [PartyId(party) for party in message.dropped]
        if self.party in dropped:
            raise PeerMisbehaved("the list of dropped clients names this client, which has sent its input")
        if len(set(dropped)) != len(dropped):
            raise PeerMisbehaved("the list of dropped clients names one twice")
        if not state.held.keys() >= set(dropped):
            raise PeerMisbehaved("the list of dropped clients names one that has sent no shares")
        survivors = frozenset((state.held.keys() - set(dropped)) | {self.party})
        self._require_enough(len(survivors), "sent an input")
        self._openings.open(self._opening(survivors))
        seeds = {int(peer): state.held[peer].seed for peer in survivors - {self.party}}
        answer = UnmaskShares(
            self._terms.sum.purpose,
            {int(peer): state.held[peer].mask_key for peer in dropped},
            seeds | {int(self.party): state.own_seed_share},
        )
        if self._credentials is None:
            self.state = Answered()
            return answer
        self.state = Signed(survivors, answer)
        statement = self._terms.survivors_statement(self.party, survivors)
        return SurvivorSignature(self._terms.sum.purpose, self._credentials.sign(statement))

    def _answer_signatures(self, state: Signed, message: SignedSurvivors) -> UnmaskShares:
        """Figure 4, rounds 3 and 4: a threshold of clients must have been told the same survivors."""
        if self._credentials is None:
            raise UnexpectedMessage("signatures without a key directory")
        signers = {PartyId(party): signature for party, signature in message.signatures.items()}
        if not signers.keys() <= state.survivors:
            raise PeerMisbehaved("a signature on the survivors by a client that is none")
        credentials = self._credentials

        def check(peer: PartyId) -> None:
            credentials.check(self._terms.survivors_statement(peer, state.survivors), signers[peer])

        require_fit(signers.keys() - {self.party}, check)
        agreeing = len(signers.keys() | {self.party})
        if agreeing < self._terms.parameters.threshold:
            raise PeerMisbehaved(
                f"{agreeing} clients have signed the survivors, fewer than {self._terms.parameters.threshold}"
            )
        self.state = Answered()
        return state.answer

    def _announced_state(self) -> bytes:
        """Its commitment, and what it must tell the others of an earlier opening of the same inputs."""
        terms = self._terms.sum
        if not terms.state or not self._terms.parameters.complete:  # neighbours of a sparse graph see different sets
            return terms.state
        return terms.state + (terms.announced or self._openings.announced(*terms.key, self.party, terms.state))

    def _opening(self, survivors: frozenset[PartyId]) -> Opening:
        """The sum as it is about to be opened, for the client's own record."""
        states = {peer: self._states[peer][:STATE_BYTES] for peer in sorted(survivors)}
        told = {peer: state[STATE_BYTES:] for peer, state in self._states.items() if len(state) > STATE_BYTES}
        # The sums of a set-up are bound to their session: what they say of the same states is the same all the same.
        terms = self._terms.sum
        model = terms.model if terms.round != SETUP else b""
        return Opening(terms.round, terms.purpose, survivors, states, model, told=told)

    def _require_enough(self, count: int, what: str) -> None:
        least = max(self._terms.parameters.min_survivors, self._terms.parameters.threshold)
        if count < least:
            raise PeerMisbehaved(f"{count} clients are said to have {what}, fewer than {least}")

    def _session_channels(self) -> PairSecrets:
        if self._channels is None:
            raise UnexpectedMessage("the sum is over for this client")
        return self._channels

    def _seal(self, peer: PartyId, mask_keys: dict[PartyId, bytes], shares: bytes) -> bytes:
        context = self._terms.share_context(self.party, peer, mask_keys, self._states[self.party])
        return self._session_channels().secret(peer).seal(context, shares)

    def _open(self, peer: PartyId, mask_keys: dict[PartyId, bytes], state: bytes, sealed: bytes) -> HeldShares:
        context = self._terms.share_context(peer, self.party, mask_keys, state)
        try:
            shares = self._session_channels().secret(peer).open(context, sealed)
        except PeerMisbehaved:
            raise not_opened(peer) from None
        return HeldShares(shares[:SHARE_BYTES], shares[SHARE_BYTES:])

    def _aborted(self, problem: ProtocolError) -> ProtocolError:
        self.abort(str(problem))
        return problem

"""The server of one masked sum: Bonawitz et al. 2017, figure 4, from the server's side. It holds no secret.

Parties, adversary, what is revealed, assumed and not covered: see the package, `protocols.sums.secagg`.

One object is one sum, driven step by step: `receive` takes an answer of the current step from a client `awaited`,
`close` ends the step with whoever has answered and gives everybody's next message. A client that has not answered by
then is out of the steps that follow, and what it sends later is refused. If too few are left, `close` raises
`SumAbandoned` and no sum exists.

    advertise keys -> share keys -> masked input -> [consistency check] -> unmasking -> done

The sum is either the exact sum of the survivors' inputs or none at all: every rebuilt mask key is compared with its
public half and every rebuilt seed with its commitment.
"""

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Final

from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved, SumAbandoned, UnexpectedMessage
from protocols.foundation.identifiers import PartyId
from protocols.foundation.words import clients_have, counted
from protocols.primitives.group import Group, GroupVector
from protocols.primitives.keys import AgreementKey, derive_key
from protocols.primitives.prg import combine_keystreams
from protocols.primitives.shamir import recombine
from protocols.sums.secagg.messages import (
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
from protocols.sums.secagg.terms import BoundTerms
from protocols.transport.base import party_names

_MASKS_AT_A_TIME: Final = 64


class Step(Enum):
    ADVERTISE_KEYS = "advertise keys"
    SHARE_KEYS = "share keys"
    MASKED_INPUT = "masked input"
    CONSISTENCY_CHECK = "consistency check"
    UNMASKING = "unmasking"
    DONE = "done"
    ABANDONED = "abandoned"


EXPECTED: Mapping[Step, type[wire.Message]] = {
    Step.ADVERTISE_KEYS: AdvertiseKeys,
    Step.SHARE_KEYS: ShareKeys,
    Step.MASKED_INPUT: MaskedInput,
    Step.CONSISTENCY_CHECK: SurvivorSignature,
    Step.UNMASKING: UnmaskShares,
}
"""What a client sends in each step."""


class SecAggServer:
    """`signed`: whether survivors are agreed on by signatures, that is, whether clients defend against this server."""

    def __init__(self, terms: BoundTerms, present: frozenset[PartyId], signed: bool = False) -> None:
        """`present`: the participants the server can still reach."""
        self.step = Step.ADVERTISE_KEYS
        self.awaited = frozenset(present) & frozenset(terms.participants)
        """Who may still answer the current step. After the last step: the survivors whose inputs are in the sum."""
        self._terms = terms
        self._signed = signed
        self._answered: set[PartyId] = set()
        self._adverts: dict[PartyId, AdvertiseKeys] = {}
        self._shares: dict[PartyId, ShareKeys] = {}
        self._neighbours: dict[PartyId, frozenset[PartyId]] = {}
        self._layout = terms.sum.layout
        self._sum = self._layout.group.zeros(self._layout.entries)
        self._survivors: frozenset[PartyId] = frozenset()
        self._signatures: dict[PartyId, bytes] = {}
        self._mask_key_shares: dict[PartyId, dict[int, bytes]] = {}
        self._seed_shares: dict[PartyId, dict[int, bytes]] = {}

    def __repr__(self) -> str:
        return f"SecAggServer(round={self._terms.sum.round}, step={self.step.value})"

    @property
    def missing(self) -> frozenset[PartyId]:
        """Who has not answered the current step."""
        return self.awaited - self._answered

    @property
    def survivors(self) -> frozenset[PartyId]:
        """Whose inputs are in the sum."""
        return self._survivors

    def receive(self, party: PartyId, message: wire.Message) -> None:
        """Take the answer of `party` to the current step. Inputs are added as they arrive and not kept."""
        expected = EXPECTED.get(self.step)
        due = party in self.awaited and party not in self._answered
        if expected is None or not isinstance(message, expected) or not due:
            raise UnexpectedMessage(f"{type(message).__name__} of {party_names([party])} in step '{self.step.value}'")
        match message:
            case AdvertiseKeys() | ShareKeys() | MaskedInput() | SurvivorSignature() | UnmaskShares():
                if message.purpose != self._terms.sum.purpose:
                    raise PeerMisbehaved(f"{party_names([party])} answers for another sum")
        match message:
            case AdvertiseKeys():
                self._adverts[party] = message
            case ShareKeys():
                if message.sealed.keys() != self._neighbours[party]:
                    raise PeerMisbehaved(f"{party_names([party])} shares its keys with others than its neighbours")
                self._shares[party] = message
            case MaskedInput():
                try:
                    vector = self._layout.group.from_wire(message.vector, self._layout.entries)
                except ValueError:
                    raise PeerMisbehaved(f"{party_names([party])} sends a vector of another length or group") from None
                if message.peers != self._terms.peers_digest(party, self._neighbours[party]):
                    raise PeerMisbehaved(f"{party_names([party])} has masked with others than its neighbours")
                self._layout.group.add_into(self._sum, vector)
            case SurvivorSignature():
                self._signatures[party] = message.signature
            case UnmaskShares():
                self._take_shares(party, message)
        self._answered.add(party)

    def require_open(self) -> None:
        """`SumAbandoned` if an answer has made the sum impossible."""
        if self.step is Step.ABANDONED:
            raise self._abandoned("a client answered for others than its neighbours")

    def drop(self, parties: Collection[PartyId]) -> None:
        """Expect nothing more from `parties`: they can no longer be reached."""
        self.awaited -= frozenset(parties) - self._answered

    def close(self) -> dict[PartyId, wire.Message]:
        """End the current step with those who have answered. Raises `SumAbandoned` if they are too few."""
        answered = frozenset(self._answered)
        messages: dict[PartyId, wire.Message] = {}
        match self.step:
            case Step.ADVERTISE_KEYS:
                graph = self._terms.graph
                self._neighbours = {party: frozenset(graph.neighbours(party)) & answered for party in answered}
                self._require_enough(answered, "advertised keys")
                messages = {party: self._directory(party) for party in answered}
                self.step = Step.SHARE_KEYS
            case Step.SHARE_KEYS:
                self._neighbours = {party: self._neighbours[party] & answered for party in answered}
                self._require_enough(answered, "shared keys")
                messages = {party: self._relayed(party) for party in answered}
                self.step = Step.MASKED_INPUT
            case Step.MASKED_INPUT:
                self._require_enough(answered, "sent an input")
                self._survivors = answered
                messages = {party: self._told(party) for party in answered}
                self.step = Step.CONSISTENCY_CHECK if self._signed else Step.UNMASKING
            case Step.CONSISTENCY_CHECK:
                if len(answered) < self._terms.parameters.threshold:
                    raise self._abandoned(
                        f"{clients_have(len(answered))} signed the survivors, "
                        f"{self._terms.parameters.threshold} are needed"
                    )
                signatures = {int(party): signature for party, signature in sorted(self._signatures.items())}
                messages = {party: SignedSurvivors(self._terms.sum.purpose, signatures) for party in answered}
                self.step = Step.UNMASKING
            case Step.UNMASKING:
                self._unmask()
                self.step = Step.DONE
            case _:
                raise UnexpectedMessage(f"the sum is {self.step.value}")
        self.awaited, self._answered = answered, set()
        return messages

    def total(self) -> GroupVector:
        """The sum over `survivors`; before the last step it would be noise, so it is refused."""
        if self.step is not Step.DONE:
            raise UnexpectedMessage(f"no sum in step '{self.step.value}'")
        return self._sum

    def _directory(self, party: PartyId) -> KeyDirectory:
        peers = sorted(self._neighbours[party])
        keys = {int(peer): self._adverts[peer].mask_key for peer in peers}
        signatures = {int(peer): self._adverts[peer].signature for peer in peers} if self._signed else {}
        return KeyDirectory(self._terms.sum.purpose, keys, {}, signatures)

    def _relayed(self, party: PartyId) -> EncryptedShares:
        given = {int(peer): self._shares[peer] for peer in sorted(self._neighbours[party])}
        sealed = {peer: one.sealed[party] for peer, one in given.items()}
        states = {peer: one.state for peer, one in given.items()}
        signatures = {peer: one.signature for peer, one in given.items()} if self._signed else {}
        return EncryptedShares(self._terms.sum.purpose, sealed, states, signatures)

    def _told(self, party: PartyId) -> Survivors:
        dropped = self._neighbours[party] - self._survivors
        return Survivors(self._terms.sum.purpose, sorted(int(peer) for peer in dropped))

    def _require_enough(self, present: frozenset[PartyId], what: str) -> None:
        """Check that every client has enough neighbours left. Otherwise it would refuse, or its masks would remain."""
        parameters = self._terms.parameters
        least = max(parameters.min_survivors, parameters.threshold)
        for party, neighbours in self._neighbours.items():
            here = len((neighbours | {party}) & present)
            # Of a client that has dropped out, a threshold of share holders is enough.
            needed = least if party in present else parameters.threshold
            if here < needed:
                where = "" if parameters.complete else f" in the neighbourhood of client {party}"
                raise self._abandoned(f"{clients_have(here)} {what}{where}, {needed} are needed")
        if len(present) < parameters.least_present or not present:
            raise self._abandoned(f"{clients_have(len(present))} {what}, {max(1, parameters.least_present)} are needed")

    def _take_shares(self, party: PartyId, message: UnmaskShares) -> None:
        holders = self._neighbours[party] | {party}
        dropped, survivors = holders - self._survivors, holders & self._survivors
        if message.mask_key_shares.keys() != dropped or message.seed_shares.keys() != survivors:
            # It holds other shares than were sent to it, so its input may lack a mask: no sum can come of this.
            self._abandoned("")
            raise PeerMisbehaved(f"{party_names([party])} does not answer for exactly its neighbours")
        for owner, share in message.mask_key_shares.items():
            self._mask_key_shares.setdefault(PartyId(owner), {})[party] = share
        for owner, share in message.seed_shares.items():
            self._seed_shares.setdefault(PartyId(owner), {})[party] = share

    def _unmask(self) -> None:
        """Remove the self masks of the survivors and the pairwise masks that nobody cancelled.

        Cost: one keystream per survivor, and one per dropped client and surviving neighbour of it.
        """
        dropped = sorted(self._shares.keys() - self._survivors)
        secrets = {party: self._rebuild(self._mask_key_shares, party, "mask key") for party in dropped}
        seeds = {party: self._rebuild(self._seed_shares, party, "self mask") for party in sorted(self._survivors)}
        for party, seed in seeds.items():
            if self._terms.seed_commitment(party, seed) != self._shares[party].seed_commitment:
                raise self._abandoned(f"the shares of the self mask of client {party} are false")
        left = _LeftMasks(self._sum, self._layout.group)
        for party, seed in seeds.items():
            left.subtract(derive_key(seed, self._terms.self_mask_context(party)))
        for party, secret in secrets.items():
            self._remove_pairwise(party, AgreementKey.from_secret(secret), left)
        left.remove()

    def _remove_pairwise(self, dropped: PartyId, mask_key: AgreementKey, left: "_LeftMasks") -> None:
        if mask_key.public != self._adverts[dropped].mask_key:
            raise self._abandoned(f"the shares of the mask key of client {dropped} are false")
        for peer in sorted(self._neighbours[dropped] & self._survivors):
            keys = {party: self._adverts[party].mask_key for party in (dropped, peer)}
            context = self._terms.pairwise_context(dropped, peer, keys)
            key = derive_key(mask_key.agree(keys[peer]), context)
            # The peer added the mask if it has the lower number, else it subtracted it.
            if peer < dropped:
                left.subtract(key)
            else:
                left.add(key)

    def _rebuild(self, shares: dict[PartyId, dict[int, bytes]], party: PartyId, what: str) -> bytes:
        threshold = self._terms.parameters.threshold
        held = shares.get(party, {})
        if len(held) < threshold:
            raise self._abandoned(
                f"{counted(len(held), 'client')} gave a share of the {what} of client {party}, {threshold} are needed"
            )
        # A threshold of shares is enough: a false one gives a secret that fails the check against its public half.
        chosen = dict(sorted(held.items())[:threshold])
        try:
            return recombine(chosen, threshold)
        except PeerMisbehaved:
            raise self._abandoned(f"the shares of the {what} of client {party} are false") from None

    def _abandoned(self, reason: str) -> SumAbandoned:
        self.step = Step.ABANDONED
        self._sum = self._layout.group.zeros(0)
        return SumAbandoned(reason)


class _LeftMasks:
    """Masks to be removed from the sum, many at a time: it then passes through the cache once for all of them."""

    def __init__(self, total: GroupVector, group: Group) -> None:
        self._total, self._group = total, group
        self._added: list[bytes] = []
        self._subtracted: list[bytes] = []

    def add(self, key: bytes) -> None:
        self._added.append(key)
        self._remove_if_many()

    def subtract(self, key: bytes) -> None:
        self._subtracted.append(key)
        self._remove_if_many()

    def _remove_if_many(self) -> None:
        if len(self._added) + len(self._subtracted) >= _MASKS_AT_A_TIME:
            self.remove()

    def remove(self) -> None:
        combine_keystreams(self._total, self._group, self._added, self._subtracted)
        self._added, self._subtracted = [], []

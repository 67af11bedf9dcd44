"""The server's view of masked sums (`protocols.sums.secagg`), written from the sums alone.

Given are the public figures (clients, threat model, terms), for each sum who dropped out in which step, and the total
over the survivors. What the simulator does in place of honest clients, and why nobody notices (each point is a step
between two hybrids, in this order):

1. Shares are encrypted under fresh random keys, not under keys that two clients agree on. Channel keys are used for
   nothing else: computational Diffie-Hellman on Curve25519, with HKDF-SHA256 as a random oracle.
2. What is encrypted are zeros, not shares: AES-256-GCM hides its plaintext. From here on the only shares in the view
   are those that survivors send in the unmasking step, which hold one secret of each client: of a survivor its seed, of
   one that dropped out its mask key. The simulator draws both secrets itself and shares that one out as a client does.
   All that is ever shown of the other secret is, for a survivor, its public mask key, and for a dropout the
   commitment to its seed, which hides 256 random bits (SHA-256 as a random oracle). No share of the other secret is
   in the view, let alone a threshold of them: Shamir's sharing is used below its threshold, with nothing.
3. The masks that two survivors share become uniform vectors: their mask keys are opened by nobody, so what they agree
   on is a random key (Diffie-Hellman and random oracle, as above), and AES-256 in counter mode under a random key used
   once is a pseudorandom generator.
4. These masks cancel in the sum and are otherwise independent. In a connected graph of survivors, the vectors
   w_u = x_u + (masks shared with survivors) are therefore uniform among all vectors with the same total (Bonawitz et
   al., lemma 6.1): the simulator draws such w_u for the total it was given, and no longer needs any input. On top of
   w_u it puts what the server removes later, and consistently with the secrets that are opened: the self mask of the
   seed, and the masks shared with clients that dropped out after sharing.

The server's own messages are computed by the honest server's code from what it has received.
"""

import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from protocols.foundation import wire
from protocols.foundation.identifiers import SETUP, PartyId, RoundId, SessionId
from protocols.ideal.views import View, ViewRecorder
from protocols.primitives.aead import seal
from protocols.primitives.group import Group, GroupVector
from protocols.primitives.keys import AgreementKey, derive_key
from protocols.primitives.prg import KEY_BYTES, combine_keystreams
from protocols.primitives.shamir import SHARE_BYTES, split
from protocols.session.channels import channel_statement, setup_transcript
from protocols.session.credentials import Credentials
from protocols.session.messages import AdvertiseChannel, ChannelDirectory
from protocols.sums.secagg.messages import (
    STATE_BYTES,
    AdvertiseKeys,
    MaskedInput,
    ShareKeys,
    SurvivorSignature,
    UnmaskShares,
)
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.server import SecAggServer, Step
from protocols.sums.secagg.terms import BoundTerms
from protocols.sums.secagg.vectors import VectorTotal, parameters_for
from protocols.sums.terms import Layout, SumTerms

Silences: TypeAlias = Mapping[PartyId, Step]
"""Who drops out in a sum, and in which step: it gives no answer to that one nor to any later one."""

Carried: TypeAlias = Callable[[PartyId, MaskedInput], tuple[wire.Message, MaskedInput]]
"""A client's masked input as the message that carries it, and as the server adds it up."""

_SHARES_BYTES: Final = 2 * SHARE_BYTES


def uniform_vector(group: Group, length: int) -> GroupVector:
    """Independent and exactly uniform elements from the operating system's randomness."""
    vector = group.zeros(length)
    filled = 0
    while filled < length:
        words = np.frombuffer(bytearray(secrets.token_bytes((length - filled) * group.element_bytes)), group.dtype)
        elements = group.from_words(words)
        vector[filled : filled + len(elements)] = elements
        filled += len(elements)
    return vector


def sealed_zeros(length: int) -> bytes:
    """`length` zeros, encrypted under a key that is forgotten at once."""
    return seal(secrets.token_bytes(KEY_BYTES), bytes(length), b"")


@dataclass(frozen=True, slots=True)
class _Secrets:
    """What the simulator draws for one client of one sum."""

    mask_key: AgreementKey
    seed: bytes


class SimulatedSums:
    """The set-up of a session and its sums. One object is one view.

    `credentials`: against an active server (which is simulated as long as it follows the protocol) the simulator plays
    the honest clients towards the key directory too; what they sign is public.
    """

    def __init__(
        self,
        clients: Collection[PartyId],
        model: ThreatModel,
        session: SessionId,
        min_survivors: int = 2,
        credentials: Mapping[PartyId, Credentials] | None = None,
    ) -> None:
        self.clients, self.session = tuple(sorted(clients)), session
        self.present = set(self.clients)
        """Those who have not dropped out."""
        self._model, self._min_survivors, self._credentials = model, min_survivors, credentials
        self._transcript: bytes | None = None
        self._recorder = ViewRecorder()

    def view(self) -> View:
        return self._recorder.view(self.session)

    @property
    def place(self) -> tuple[SessionId, bytes]:
        """What dealt randomness is bound to: the session, and the digest of its set-up."""
        if self._transcript is None:
            raise RuntimeError("setup() comes first")
        return self.session, self._transcript

    def received(self, sender: PartyId, message: wire.Message, round_id: RoundId, phase: str) -> None:
        self._recorder.write("received", sender, round_id, phase, wire.encode(message, self.session, round_id))

    def sent(self, to: PartyId, message: wire.Message, round_id: RoundId, phase: str) -> None:
        self._recorder.write("sent", to, round_id, phase, wire.encode(message, self.session, round_id))

    def setup(self) -> None:
        """Channel keys, whose secret halves the simulator has no use for."""
        phase, adverts = "advertise channel", dict[PartyId, AdvertiseChannel]()
        for party in self.clients:
            key, signature = AgreementKey().public, b""
            if self._credentials is not None:
                signature = self._credentials[party].sign(channel_statement(self.session, party, key))
            adverts[party] = AdvertiseChannel(key, signature)
            self.received(party, adverts[party], SETUP, phase)
        keys = {party: advert.channel_key for party, advert in adverts.items()}
        signatures = {int(party): advert.signature for party, advert in adverts.items()}
        directory = ChannelDirectory({int(party): key for party, key in keys.items()}, signatures)
        for party in self.clients:
            self.sent(party, directory, SETUP, phase)
        self._transcript = setup_transcript(self.session, keys)

    def masked_sum(
        self,
        terms: SumTerms[Layout],
        total: GroupVector,
        silent: Silences | None = None,
        carried: Carried | None = None,
    ) -> VectorTotal:
        """One sum from its `total` over the survivors alone; what the honest server reads from the messages is it.

        `carried`: how inputs travel, if not by themselves. The server then reads what it adds up of them.
        """
        bound = self._bound(terms)
        server = SecAggServer(bound, frozenset(self.present), signed=self._model.server == "active")
        simulated = SimulatedSum(bound, total, silent or {}, self._credentials)
        while server.step is not Step.DONE:
            phase, awaited = f"{server.step.value}/{terms.purpose}", server.awaited
            simulated.begin(server.step, awaited)
            for party in sorted(awaited & simulated.answering):
                message = taken = simulated.answer(server.step, party)
                if carried is not None and isinstance(message, MaskedInput):
                    message, taken = carried(party, message)
                self.received(party, message, terms.round, phase)
                server.receive(party, taken)
            for party, reply in sorted(server.close().items()):
                self.sent(party, reply, terms.round, phase)
        self.present -= (silent or {}).keys()
        return VectorTotal(server.total(), server.survivors)

    def _bound(self, terms: SumTerms[Layout]) -> BoundTerms:
        parameters = parameters_for(len(terms.participants), len(self.clients), self._model, self._min_survivors)
        return BoundTerms(*self.place, parameters, terms)


class SimulatedSum:
    """The honest clients' answers in one sum, made without their inputs."""

    def __init__(
        self,
        terms: BoundTerms,
        total: GroupVector,
        silent: Silences,
        credentials: Mapping[PartyId, Credentials] | None,
    ) -> None:
        """If the terms have any state, clients commit to that of their input."""
        layout = terms.sum.layout
        layout.group.require(total, layout.entries)
        self._guarded = bool(terms.sum.state)
        self.answering: frozenset[PartyId] = frozenset()
        self._terms, self._total, self._silent, self._credentials = terms, total, silent, credentials
        self._neighbours = {party: frozenset(terms.graph.neighbours(party)) for party in terms.participants}
        self._secrets: dict[PartyId, _Secrets] = {}
        self._advertised: frozenset[PartyId] = frozenset()
        self._shared: frozenset[PartyId] = frozenset()
        self._survivors: frozenset[PartyId] = frozenset()
        self._inputs: dict[PartyId, GroupVector] = {}
        self._seed_shares: dict[PartyId, dict[int, bytes]] = {}
        self._mask_key_shares: dict[PartyId, dict[int, bytes]] = {}

    def mask_key(self, party: PartyId) -> AgreementKey:
        """That the simulator has drawn for a client."""
        return self._secrets[party].mask_key

    def begin(self, step: Step, awaited: frozenset[PartyId]) -> None:
        """Who answers `step`, and what the simulator draws for all of them at once."""
        self.answering = frozenset(party for party in awaited if self._silent.get(party) is not step)
        match step:
            case Step.ADVERTISE_KEYS:
                self._advertised = self.answering
            case Step.SHARE_KEYS:
                self._shared = self.answering
            case Step.MASKED_INPUT:
                self._survivors = self.answering
                self._inputs = self._draw_inputs()
                self._share_out()

    def answer(self, step: Step, party: PartyId) -> wire.Message:
        purpose = self._terms.sum.purpose
        match step:
            case Step.ADVERTISE_KEYS:
                mask_key = AgreementKey.from_secret(secrets.token_bytes(KEY_BYTES))
                self._secrets[party] = _Secrets(mask_key, secrets.token_bytes(KEY_BYTES))
                signature = b""
                if self._credentials is not None:
                    signature = self._credentials[party].sign(self._terms.advert_statement(party, mask_key.public))
                return AdvertiseKeys(purpose, mask_key.public, b"", signature)
            case Step.SHARE_KEYS:
                return self._shares(party)
            case Step.MASKED_INPUT:
                digest = self._terms.peers_digest(party, self._neighbours[party] & self._shared)
                return MaskedInput(purpose, self._terms.sum.layout.group.to_wire(self._inputs[party]), digest)
            case Step.CONSISTENCY_CHECK if self._credentials is not None:
                statement = self._terms.survivors_statement(party, self._survivors)
                return SurvivorSignature(purpose, self._credentials[party].sign(statement))
            case Step.UNMASKING:
                return self._openings(party)
        raise ValueError(f"nothing is answered in step '{step.value}'")

    def _shares(self, party: PartyId) -> ShareKeys:
        known, signature = self._secrets[party], b""
        # A commitment is a pseudorandom function of a state that does not come again within a session.
        state = secrets.token_bytes(STATE_BYTES) if self._guarded else b""
        if self._credentials is not None:
            signature = self._credentials[party].sign(self._terms.state_statement(party, known.mask_key.public, state))
        sealed = {int(peer): sealed_zeros(_SHARES_BYTES) for peer in sorted(self._neighbours[party] & self._advertised)}
        commitment = self._terms.seed_commitment(party, known.seed)
        return ShareKeys(self._terms.sum.purpose, sealed, commitment, state, signature)

    def _draw_inputs(self) -> dict[PartyId, GroupVector]:
        """Masked inputs [survivor]: uniform vectors that add up to the total, under the masks that will be opened."""
        group, length = self._terms.sum.layout.group, self._terms.sum.layout.entries
        ordered = sorted(self._survivors)
        inputs = {party: uniform_vector(group, length) for party in ordered[1:]}
        rest = self._total.copy()
        for vector in inputs.values():
            group.subtract_into(rest, vector)
        inputs[ordered[0]] = rest
        public = {party: known.mask_key.public for party, known in self._secrets.items()}
        for party, vector in inputs.items():
            self_mask = derive_key(self._secrets[party].seed, self._terms.self_mask_context(party))
            added, subtracted = [self_mask], list[bytes]()
            for peer in sorted(self._neighbours[party] & self._shared - self._survivors):
                agreed = self._secrets[peer].mask_key.agree(public[party])
                key = derive_key(agreed, self._terms.pairwise_context(party, peer, public))
                (added if party < peer else subtracted).append(key)
            combine_keystreams(vector, group, added, subtracted)
        return inputs

    def _share_out(self) -> None:
        """Of every client that shared its keys the one secret that will be opened, as the client itself does it."""
        threshold = self._terms.parameters.threshold
        for party in sorted(self._shared):
            holders = sorted((self._neighbours[party] & self._advertised) | {party})
            if party in self._survivors:
                self._seed_shares[party] = split(self._secrets[party].seed, holders, threshold)
            else:
                secret = self._secrets[party].mask_key.secret_for_sharing()
                self._mask_key_shares[party] = split(secret, holders, threshold)

    def _openings(self, party: PartyId) -> UnmaskShares:
        peers = self._neighbours[party] & self._shared
        # In the order in which a client writes them.
        survivors, dropped = frozenset((peers & self._survivors) | {party}), sorted(peers - self._survivors)
        seeds = {int(peer): self._seed_shares[peer][party] for peer in survivors - {party}}
        return UnmaskShares(
            self._terms.sum.purpose,
            {int(peer): self._mask_key_shares[peer][party] for peer in dropped},
            seeds | {int(party): self._seed_shares[party][party]},
        )

"""Bound terms: what all parties of one sum must agree on, and the keys and statements that are bound to it.

Every client computes its own terms from its own configuration and record. Whatever differs between two clients (the
session's channel keys, what they were told when it began, the participants, the parameters, the group, the length)
gives them different keys: shares do not open, signatures do not verify, and masks do not cancel.

Three things enter only the keys under which clients encrypt shares for each other, so that the server need not know
them: `SumTerms.model`, a digest of what a client has applied of all that the server sent it; `SumTerms.counted`, the
count of holders that it goes by; and the state to which the sender of the shares has committed
(`protocols.sums.secagg.openings`). That is enough: a client masks only with peers whose shares it has opened, and gives
its input after that. So all clients of one sum have applied the same and go by the same count, and each knows the true
states of all with whom it masks.

A mask key may be advertised before any of these is known: it is bound to the public terms alone. The state comes with
the shares. Of a pair each binds its own state into what it encrypts for the other, and both open what they are sent
before they give an input: a server that changes either state, or passes on the shares of one under the state of
another time, makes an end of the sum. The state needs no secrecy from the server, which reads it in `ShareKeys`.
"""

import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from protocols.foundation.digests import digest, encode_parties, length_prefixed
from protocols.foundation.identifiers import PartyId, SessionId
from protocols.primitives.identity import Statement
from protocols.primitives.keys import KeyContext
from protocols.session.channels import PROTOCOL, VERSION
from protocols.sums.secagg.graph import MaskingGraph
from protocols.sums.secagg.params import SumParameters
from protocols.sums.terms import Layout, SumTerms


@dataclass(frozen=True)
class BoundTerms:
    """A sum of one session, to which its keys and statements are bound. Everybody computes the same."""

    session: SessionId
    transcript: bytes
    """Digest of the set-up (`setup_transcript`)."""
    parameters: SumParameters
    sum: SumTerms[Layout]

    @cached_property
    def participants(self) -> tuple[PartyId, ...]:
        """In ascending order."""
        given = self.sum.participants
        ordered = tuple(sorted(given))
        return given if given == ordered else ordered  # the caller's own: a thousand clients in one process share it

    @property
    def graph(self) -> MaskingGraph:
        """Made anew: it is as large as the sum has participants, and a client needs its own neighbours only."""
        return MaskingGraph(self.participants, self.parameters.degree, self.digest)

    @cached_property
    def digest(self) -> bytes:
        """Without `SumTerms.model` and `SumTerms.state`, which the server need not know."""
        figures, layout = self.parameters, self.sum.layout
        least = (figures.min_survivors, figures.least_present)
        numbers = (self.sum.round, figures.degree, figures.threshold, *least, layout.entries)
        return digest(
            self.transcript,
            struct.pack("<6Q", *numbers),
            self.sum.purpose.encode(),
            encode_parties(self.participants),
            layout.group.name.encode(),
        )

    def share_context(
        self, sender: PartyId, receiver: PartyId, mask_keys: Mapping[PartyId, bytes], state: bytes
    ) -> KeyContext:
        """For the key under which `sender`, in this `state`, encrypts shares for `receiver`, and their associated data.

        It holds both mask keys, the model and the count: shares open only between clients that have each other's true
        keys, have applied the same and go by the same count. Whatever differs is noticed before any input is given.
        """
        same = length_prefixed(self.sum.model, self.sum.counted)
        binding = digest(self.digest, same, mask_keys[sender], mask_keys[receiver], state)
        return self._context(sender, receiver, "shares", binding)

    def pairwise_context(self, party: PartyId, peer: PartyId, mask_keys: Mapping[PartyId, bytes]) -> KeyContext:
        """For the mask of a pair; the same for both of them."""
        low, high = sorted((party, peer))
        return self._context(low, high, "pairwise mask", digest(self.digest, mask_keys[low], mask_keys[high]))

    def self_mask_context(self, party: PartyId) -> KeyContext:
        return self._context(party, party, "self mask", self.digest)

    def seed_commitment(self, party: PartyId, seed: bytes) -> bytes:
        """Binding by collision resistance, hiding because the seed has 256 bits."""
        return digest(b"seed commitment", self.digest, struct.pack("<Q", party), seed)

    def peers_digest(self, party: PartyId, peers: Collection[PartyId]) -> bytes:
        """Of those with whom `party` shares masks."""
        return digest(b"peers", self.digest, struct.pack("<Q", party), encode_parties(peers))

    def advert_statement(self, party: PartyId, mask_key: bytes, state: bytes = b"") -> Statement:
        """`state`: in records of format 3 and earlier."""
        return self._statement(party, "advertise keys", digest(self.digest, mask_key, state))

    def state_statement(self, party: PartyId, mask_key: bytes, state: bytes) -> Statement:
        """That `party`, with this mask key, has committed to this state."""
        return self._statement(party, "share keys", digest(self.digest, mask_key, state))

    def survivors_statement(self, party: PartyId, survivors: Collection[PartyId]) -> Statement:
        return self._statement(party, "consistency check", digest(self.digest, encode_parties(survivors)))

    def _context(self, first: PartyId, second: PartyId, use: str, binding: bytes) -> KeyContext:
        use = f"{use}/{self.sum.purpose}"
        return KeyContext(PROTOCOL, VERSION, self.session, self.sum.round, first, second, use, binding=binding)

    def _statement(self, party: PartyId, step: str, content: bytes) -> Statement:
        step = f"{step}/{self.sum.purpose}"
        return Statement(PROTOCOL, VERSION, self.session, self.sum.round, party, step, content)

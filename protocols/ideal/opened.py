"""All that the server can compute from a view of a masked sum, real or simulated: the input of a distinguisher.

The messages of one sum are given to the honest server's code, which must accept them, answer with exactly the messages
that stand in the view, and come to a total. Then every secret that a threshold of shares opens is rebuilt, and from
each client's upload all masks are removed that come from those secrets. What is left of an upload is its input under
the masks shared with other survivors, and nothing the server knows removes these.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from protocols.foundation import wire
from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import PartyId
from protocols.ideal.views import View
from protocols.primitives.group import MODULUS, Group, GroupVector, Ring
from protocols.primitives.keys import AgreementKey, derive_key
from protocols.primitives.prg import combine_keystreams
from protocols.primitives.residues import Residues
from protocols.primitives.shamir import recombine
from protocols.session.channels import setup_transcript
from protocols.session.messages import ChannelDirectory
from protocols.sums.secagg.messages import AdvertiseKeys, MaskedInput, ShareKeys, UnmaskShares
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.server import EXPECTED, SecAggServer, Step
from protocols.sums.secagg.terms import BoundTerms
from protocols.sums.secagg.vectors import parameters_for
from protocols.sums.terms import Layout, SumTerms


@dataclass(frozen=True, slots=True)
class OpenedSum:
    """One sum as the server sees it in the end."""

    survivors: frozenset[PartyId]
    total: GroupVector = field(repr=False)
    uploads: dict[PartyId, GroupVector] = field(repr=False)
    residues: dict[PartyId, GroupVector] = field(repr=False)
    """The uploads without the masks that were opened; they add up to the total."""
    seeds: dict[PartyId, bytes] = field(repr=False)
    """Of the survivors."""
    mask_keys: dict[PartyId, bytes] = field(repr=False)
    """Of those who dropped out after sharing."""


def centred(vector: GroupVector, group: Group) -> npt.NDArray[np.float64]:
    """Elements as fractions of the group's size, from -1/2 to 1/2: small numbers of either sign are near zero."""
    if isinstance(group, Residues):
        size = float(group.modulus)
    else:
        size = float(1 << group.bits) if isinstance(group, Ring) else float(MODULUS)
    fractions: npt.NDArray[np.float64] = vector.astype(np.float64) / size
    return fractions - (fractions >= 0.5)


class NotAView(ProtocolError):
    """Messages that the honest server would not have accepted, or answers that it would not have given."""


def open_sum(
    view: View, terms: SumTerms[Layout], clients: Collection[PartyId], model: ThreatModel, min_survivors: int = 2
) -> OpenedSum:
    """`NotAView` (or another `ProtocolError`) unless the view holds this sum, from its first step to its total."""
    parameters = parameters_for(len(terms.participants), len(clients), model, min_survivors)
    bound = BoundTerms(view.session, transcript_of(view), parameters, terms)
    server = SecAggServer(bound, frozenset(clients), signed=model.server == "active")
    said = _Said(view, terms)
    while server.step is not Step.DONE:
        step = server.step
        for party, message in said.received(EXPECTED[step]):
            server.receive(party, message)
        replies = server.close()
        if any(said.to_client(party, type(reply)) != _encoded(reply, view, terms) for party, reply in replies.items()):
            raise NotAView(f"the server's answer after step '{step.value}' is not that of an honest one")
    opener = _Opener(bound, said)
    layout = terms.layout
    uploads = {
        party: layout.group.from_wire(message.vector, layout.entries) for party, message in said.received(MaskedInput)
    }
    seeds = {party: opener.secret(party, "seed_shares") for party in sorted(server.survivors)}
    shared = [party for party, _ in said.received(ShareKeys)]
    gone = {party: opener.secret(party, "mask_key_shares") for party in shared if party not in server.survivors}
    residues = {party: opener.residue(party, upload, seeds[party], gone) for party, upload in uploads.items()}
    return OpenedSum(server.survivors, server.total(), uploads, residues, seeds, gone)


def transcript_of(view: View) -> bytes:
    """Digest of the set-up that a view begins with."""
    directories = [seen.message for seen in view.messages() if isinstance(seen.message, ChannelDirectory)]
    if not directories:
        raise NotAView("no set-up")
    return setup_transcript(view.session, {PartyId(party): key for party, key in directories[0].channel_keys.items()})


def _encoded(message: wire.Message, view: View, terms: SumTerms[Layout]) -> bytes:
    return bytes(wire.encode(message, view.session, terms.round))


class _Said:
    """The messages of one sum."""

    def __init__(self, view: View, terms: SumTerms[Layout]) -> None:
        self._seen = [
            (seen, frame.frame)
            for seen, frame in zip(view.messages(), view.frames, strict=True)
            if (seen.round, getattr(seen.message, "purpose", None)) == terms.key
        ]

    def received(self, kind: type[wire.M]) -> list[tuple[PartyId, wire.M]]:
        return [
            (seen.peer, seen.message)
            for seen, _ in self._seen
            if seen.direction == "received" and isinstance(seen.message, kind)
        ]

    def to_client(self, party: PartyId, kind: type[wire.Message]) -> bytes | None:
        for seen, frame in self._seen:
            if (seen.direction, seen.peer) == ("sent", party) and isinstance(seen.message, kind):
                return frame
        return None


class _Opener:
    def __init__(self, terms: BoundTerms, said: _Said) -> None:
        self._terms = terms
        self._public = {party: message.mask_key for party, message in said.received(AdvertiseKeys)}
        self._shared = {party for party, _ in said.received(ShareKeys)}
        self._answers = said.received(UnmaskShares)

    def secret(self, owner: PartyId, which: str) -> bytes:
        """From all shares that were sent: those beyond the threshold must agree with the others."""
        shares = {int(party): getattr(answer, which).get(int(owner)) for party, answer in self._answers}
        given = {party: share for party, share in shares.items() if share is not None}
        return recombine(given, self._terms.parameters.threshold)

    def residue(self, party: PartyId, upload: GroupVector, seed: bytes, gone: dict[PartyId, bytes]) -> GroupVector:
        vector, terms = upload.copy(), self._terms
        added, subtracted = list[bytes](), [derive_key(seed, terms.self_mask_context(party))]
        for peer in set(terms.graph.neighbours(party)) & gone.keys():
            agreed = AgreementKey.from_secret(gone[peer]).agree(self._public[party])
            key = derive_key(agreed, terms.pairwise_context(party, peer, self._public))
            (subtracted if party < peer else added).append(key)
        combine_keystreams(vector, terms.sum.layout.group, added, subtracted)
        return vector

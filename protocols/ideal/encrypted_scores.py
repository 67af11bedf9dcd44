"""The view of encrypted scores (`protocols.scores.encrypted`): the server's, and that of the server with the asker.

What stands in place of what, and why nobody notices:

server       What scorers encrypt adds up to zero, and needs none of their scores. Whoever tells the difference reads
             ciphertexts under a key that neither the server nor the simulator has: decisional composite residuosity
             for Paillier, ring learning with errors for BFV. Masks are drawn apart from the scores, so the correction,
             which the honest server's code computes from them, is that of a real sum.
with asker   Ciphertexts are readable. The simulator is given the sum over the scorers and draws masked vectors for it
             as in every masked sum (`masked_sum`). It encrypts and adds them up as scorers and server do.

In both it draws the asker's key pair as the asker does, and encrypts for every scorer with randomness of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId
from protocols.holders.secret import SecretHolderClient, SecretHolderServer
from protocols.ideal.masked_sum import Silences, SimulatedSums
from protocols.ideal.real import Falls, Parties, ServerSide
from protocols.ideal.real_sessions import Session
from protocols.ideal.scores import KnownBatch, ScoreSession, served, simulate_asking
from protocols.ideal.views import SeenFrame, View
from protocols.primitives.group import GroupVector
from protocols.scores.encrypted.layout import EncryptedLayout
from protocols.scores.encrypted.messages import AskerKey, EncryptedScores
from protocols.scores.encrypted.scheme import DecryptionKey, Encryptor, Scheme
from protocols.scores.encrypted.sums import EncryptedScoreClient, EncryptedScoreServer
from protocols.scores.interface import Answer, Scores
from protocols.scores.messages import PURPOSE
from protocols.scores.terms import ScoreTerms
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Conversation
from protocols.sums.secagg.keys import ClientKeys
from protocols.sums.secagg.messages import STATE_BYTES, MaskedInput
from protocols.sums.terms import SumTerms

MakeScheme: TypeAlias = Callable[[], Scheme]
"""Called for every party."""
ReadInput: TypeAlias = Callable[[EncryptedScores, EncryptedLayout], GroupVector]
"""What a masked sum gets of a scorer's message."""
_KEY: Final = f"key/{PURPOSE}"
_TOTAL: Final = f"total/{PURPOSE}"
_DIGEST_BYTES: Final = 32


class KeptKeys(dict[bytes, DecryptionKey]):
    """Askers' key pairs by their public halves, for whoever looks at views with the asker's eyes."""


class _TellingClient(EncryptedScoreClient):
    """A client that hands its key pair over once it has asked."""

    kept: KeptKeys

    def ask(self, session: ClientSession, terms: ScoreTerms, queries: bytes, own: Scores) -> Answer:
        answer = super().ask(session, terms, queries, own)
        if self._own_key is not None:
            self.kept[self._own_key.public] = self._own_key
        return answer


def encrypted_session(
    parties: Parties, todo: Sequence[KnownBatch], scheme: MakeScheme, falls: Falls, kept: KeptKeys
) -> ScoreSession:
    """Real batches. `kept`: where the asker's key pairs go."""

    def client(keys: ClientKeys) -> EncryptedScoreClient:
        made = _TellingClient(scheme(), keys.vectors, SecretHolderClient(keys.vectors, keys.key))
        made.kept = kept
        return made

    return ScoreSession(
        parties,
        todo,
        client,
        lambda keys: EncryptedScoreServer(scheme(), keys.vectors, SecretHolderServer(keys.vectors)),
        falls,
    )


@dataclass(frozen=True)
class OpenedSession(Session):
    """The same, as seen by the server with the asker: `read` is done to every view."""

    inner: ScoreSession
    read: Callable[[View], View] = field(repr=False)

    @property
    def parties(self) -> Parties:  # type: ignore[override]
        return self.inner.parties

    @property
    def falls(self) -> Falls:  # type: ignore[override]
        return self.inner.falls

    def serve(self, side: ServerSide) -> None:
        self.inner.serve(side)

    def take_part(self, conversation: Conversation) -> None:
        self.inner.take_part(conversation)

    def view(self) -> View:
        return self.read(self.inner.view())


class SimulatedAsker:
    """The asker's key pair of one session, and everybody else's hold on its public half."""

    def __init__(self, scheme: Scheme, parties: Sequence[PartyId]) -> None:
        self.scheme, self.key = scheme, scheme.new_key()
        self.encryptors: dict[PartyId, Encryptor] = {party: scheme.load(self.key.public) for party in parties}
        self.server: Encryptor = scheme.load(self.key.public)


def encrypted_terms(terms: ScoreTerms, scheme: Scheme, state: bytes = b"") -> SumTerms[EncryptedLayout]:
    """The masked sum of a batch, as the server has it."""
    return SumTerms(terms.round, PURPOSE, terms.scorers, EncryptedLayout(terms, scheme.group), state=state)


def simulate_encrypted_scores(
    sums: SimulatedSums,
    terms: ScoreTerms,
    query_bytes: int,
    asker: SimulatedAsker,
    total: GroupVector | None = None,
    silent: Silences | None = None,
) -> None:
    """One batch. `total`: over the scorers that contribute; without it the server alone is simulated."""
    scheme = asker.scheme
    of_sum = encrypted_terms(terms, scheme, bytes(STATE_BYTES))
    layout = of_sum.layout
    zeros, adder = layout.group.zeros(layout.entries), asker.server.adder(layout)
    simulate_asking(sums, terms, _DIGEST_BYTES + query_bytes)
    key = scheme.kinds.key(PURPOSE, asker.key.public)
    sums.received(terms.asker, key, terms.round, _KEY)
    for scorer in sorted(sums.present & frozenset(terms.scorers)):
        sums.sent(scorer, key, terms.round, _KEY)

    def carried(party: PartyId, masked: MaskedInput) -> tuple[wire.Message, MaskedInput]:
        ciphertexts = asker.encryptors[party].encrypt(masked.vector, layout)
        adder.add(ciphertexts)
        message = scheme.kinds.scores(masked.purpose, ciphertexts, masked.peers)
        return message, MaskedInput(masked.purpose, zeros, masked.peers)

    sums.present.discard(terms.asker)
    correction = sums.masked_sum(of_sum, zeros if total is None else total, silent, carried)
    sums.present.add(terms.asker)
    contributors = sorted(int(party) for party in correction.contributors)
    message = scheme.kinds.total(PURPOSE, contributors, adder.close(correction.vector))
    sums.sent(terms.asker, message, terms.round, _TOTAL)
    served(sums, terms)


def as_masked_sums(view: View, todo: Sequence[KnownBatch], scheme: Scheme, read: ReadInput) -> View:
    """The view with masked inputs in place of ciphertexts: one of masked sums."""
    layouts = {batch.terms.round: EncryptedLayout(batch.terms, scheme.group) for batch in todo}
    frames = []
    for seen, frame in zip(view.messages(), view.frames, strict=True):
        if isinstance(seen.message, EncryptedScores):
            masked = MaskedInput(seen.message.purpose, read(seen.message, layouts[seen.round]), seen.message.peers)
            encoded = bytes(wire.encode(masked, view.session, seen.round))
            frame = SeenFrame(frame.direction, frame.peer, frame.round, frame.phase, encoded)
        frames.append(frame)
    return View(view.session, tuple(frames))


def with_zeros(view: View, todo: Sequence[KnownBatch], scheme: Scheme) -> View:
    """What the server adds up by itself. Its total is the correction."""
    return as_masked_sums(view, todo, scheme, lambda message, layout: layout.group.zeros(layout.entries))


def with_plaintexts(view: View, todo: Sequence[KnownBatch], scheme: Scheme, kept: KeptKeys) -> View:
    """What the server reads with the asker's key, which is no longer kept afterwards."""
    public = public_key_of(view)
    key = kept.pop(public)
    return as_masked_sums(view, todo, scheme, lambda message, layout: key.decrypt(message.ciphertexts, layout))


def public_key_of(view: View) -> bytes:
    """The asker's, who has one per session."""
    keys = {seen.message.key for seen in view.messages() if isinstance(seen.message, AskerKey)}
    if len(keys) != 1:
        raise ValueError(f"a view with {len(keys)} keys of askers")
    return keys.pop()

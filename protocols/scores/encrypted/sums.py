"""Encrypted scores as a conversation, whatever the cipher.

Parties, adversary, what is revealed, assumed and not covered: see the package, `protocols.scores.encrypted`.

An asker has one key pair per session, made when it first asks. A scorer and the server keep the last key that they have
loaded: what they have computed for it, e.g. tables, serves the next batch.
"""

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from protocols.foundation import wire
from protocols.foundation.digests import digest, encode_parties, length_prefixed
from protocols.foundation.errors import PeerMisbehaved, SumAbandoned
from protocols.foundation.identifiers import PartyId
from protocols.foundation.spent import Spent
from protocols.holders.interface import HolderClient, HolderServer
from protocols.primitives.group import Ring
from protocols.primitives.prg import KEY_BYTES
from protocols.primitives.residues import Residues
from protocols.scores import asking, counting
from protocols.scores.budget import Budget, announced, charge, require_budget
from protocols.scores.covering import Covering, Kept, MemoryCovers
from protocols.scores.encrypted.layout import EncryptedLayout
from protocols.scores.encrypted.messages import (
    EncryptedScores,
    EncryptedTotal,
    key_frame_bytes,
    scores_frame_bytes,
    total_frame_bytes,
)
from protocols.scores.encrypted.scheme import Adder, DecryptionKey, Encryptor, Scheme
from protocols.scores.interface import (
    Answer,
    ScoreClient,
    ScoreQueries,
    Scores,
    ScoreServer,
    ScoringReport,
    Served,
    encode,
)
from protocols.scores.messages import PURPOSE, checked_contributors, require_sendable
from protocols.scores.ranking import rank
from protocols.scores.terms import ScoreTerms
from protocols.session.client_session import ClientSession
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.messages import MaskedInput
from protocols.sums.secagg.openings import commit
from protocols.sums.secagg.vectors import VectorClient, VectorServer
from protocols.sums.terms import SumTerms

_KEY: Final = f"key/{PURPOSE}"
_TOTAL: Final = f"total/{PURPOSE}"
_DIGEST_BYTES: Final = 32


def sum_terms(terms: ScoreTerms, group: Ring | Residues) -> SumTerms[EncryptedLayout]:
    """The masked sum beside the ciphertexts, as the server has it."""
    return SumTerms(terms.round, PURPOSE, terms.scorers, EncryptedLayout(terms, group))


def _largest_frame(terms: ScoreTerms, scheme: Scheme, layout: EncryptedLayout) -> int:
    count, size = scheme.ciphertexts(layout), scheme.ciphertext_bytes
    return max(scores_frame_bytes(count, size), total_frame_bytes(terms, count, size))


def _key_digest(scheme: Scheme, public: bytes) -> bytes:
    return digest(b"secure-kg/scores/asker key/1", scheme.name.encode(), public)


class _LastKey:
    """The key that was loaded last."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        self._loaded: tuple[bytes, Encryptor] | None = None

    def load(self, public: bytes, asker: PartyId) -> Encryptor:
        """`PeerMisbehaved`, in the asker's name, for what is no key."""
        if self._loaded is None or self._loaded[0] != public:
            try:
                self._loaded = public, self._scheme.load(public)
            except PeerMisbehaved as problem:
                raise PeerMisbehaved(f"client {asker} asks under {problem}") from None
        return self._loaded[1]


class EncryptedScoreClient(ScoreClient):
    """`vectors` holds the session's channels; `holders`: how holders are counted; `budget`: of opened means."""

    def __init__(
        self, scheme: Scheme, vectors: VectorClient, holders: HolderClient, budget: Budget | None = None
    ) -> None:
        self._scheme, self._vectors, self._holders, self._budget = scheme, vectors, holders, budget
        self._own_key: DecryptionKey | None = None
        self._keys = _LastKey(scheme)
        self._covering = budget.covering if budget is not None else Covering(Kept(MemoryCovers()))
        self._state_key = secrets.token_bytes(KEY_BYTES)
        """The same queries have the same commitment, so that clients open them over one set of survivors only."""

    def ask(self, session: ClientSession, terms: ScoreTerms, queries: bytes, own: Scores) -> Answer:
        spent, scheme, layout = Spent(), self._scheme, EncryptedLayout(terms, self._scheme.group)
        with spent.measure():
            require_sendable(terms, _largest_frame(terms, scheme, layout))
            encoded = encode(own, terms)
            key = self._own_key = self._own_key or scheme.new_key()
        asking.ask(session, self._vectors.session, terms, queries, _key_digest(scheme, key.public))
        with session.phase(terms.round, _KEY):
            session.send(scheme.kinds.key(PURPOSE, key.public), terms.round)
        session.conversation.admit(total_frame_bytes(terms, scheme.ciphertexts(layout), scheme.ciphertext_bytes))
        with session.phase(terms.round, _TOTAL):
            total: EncryptedTotal = session.receive(scheme.kinds.total, terms.round, PURPOSE)
        with spent.measure():
            contributors = checked_contributors(total.contributors, terms)
            require_ciphertexts(total.ciphertexts, scheme, layout)
            sums = layout.read(key.decrypt(total.ciphertexts, layout))
            ranking = rank(sums.plus(encoded.sums), frozenset(map(int, contributors)), terms)
        return Answer(ranking, ScoringReport(encoded.clipped, encoded.max_error, spent))

    def score(self, session: ClientSession, terms: ScoreTerms, scoring: ScoreQueries) -> ScoringReport:
        spent, layout = Spent(), EncryptedLayout(terms, self._scheme.group)
        require_sendable(terms, _largest_frame(terms, self._scheme, layout))
        asked = asking.asked(session, self._vectors.session, terms, _DIGEST_BYTES)
        require_budget(session, self._budget, terms, asked.queries)
        public = self._asker_key(session, terms, asked.attached)
        with spent.measure():
            encryptor = self._keys.load(public, terms.asker)
            encryptor.begin(layout)
        depends_on = length_prefixed(terms.table, encode_parties([terms.asker]), asked.queries)
        state = commit(self._state_key, PURPOSE, depends_on)
        # Clients that were told different keys, or asked different things, cannot add up.
        told = asking.agreed(asked.secrets, session, terms)
        of_sum = SumTerms(
            terms.round, PURPOSE, terms.scorers, layout, told, state, announced(session, self._covering, terms)
        )
        counting.prepare(session, self._holders, terms)
        self._vectors.prepare(session, of_sum)
        scores = scoring(asked.queries)
        counted = counting.count(session, self._holders, terms, scores.held)
        with spent.measure():
            encoded = encode(scores.only(counted.enough), terms)
            vector = layout.vector(encoded)

        def carry(masked: MaskedInput) -> wire.Message:
            return self._scheme.kinds.scores(masked.purpose, encryptor.encrypt(masked.vector, layout), masked.peers)

        charge(self._budget, terms, asked.queries)
        may_open = self._covering.guard(terms, counted.may_open)
        spent.add(self._vectors.contribute(session, of_sum, vector, (), may_open, carry))
        spent.add(encryptor.ahead())
        return ScoringReport(encoded.clipped, encoded.max_error, spent)

    def _asker_key(self, session: ClientSession, terms: ScoreTerms, sealed_digest: bytes) -> bytes:
        """The key as the server passes it on; `PeerMisbehaved` unless it is the one that the asker has named."""
        session.conversation.admit(key_frame_bytes(self._scheme.key_bytes))
        with session.phase(terms.round, _KEY):
            public = session.receive(self._scheme.kinds.key, terms.round, PURPOSE).key
        if _key_digest(self._scheme, public) != sealed_digest:
            raise PeerMisbehaved(f"the server has passed on a key that is not that of client {terms.asker}")
        return public


class EncryptedScoreServer(ScoreServer):
    def __init__(self, scheme: Scheme, vectors: VectorServer, holders: HolderServer) -> None:
        super().__init__()
        self._scheme, self._vectors, self._holders = scheme, vectors, holders
        self._keys = _LastKey(scheme)

    def serve(self, session: ServerSession, terms: ScoreTerms) -> Served:
        scheme, layout = self._scheme, EncryptedLayout(terms, self._scheme.group)
        require_sendable(terms, _largest_frame(terms, scheme, layout))
        public = self._relay_key(session, terms, asking.relay(session, terms))
        with self.spent.measure():
            encryptor = self._keys.load(public, terms.asker)
            encryptor.begin(layout)
        session.conversation.admit(scores_frame_bytes(scheme.ciphertexts(layout), scheme.ciphertext_bytes))
        of_sum, among = sum_terms(terms, scheme.group), session.among(terms.scorers)
        before = replace(self._vectors.unmasking)
        counting.serve_prepare(among, self._holders, terms)
        self._vectors.prepare(among, of_sum)
        counting.serve(among, self._holders, terms)
        inputs = _Inputs(scheme, layout, encryptor.adder(layout))
        correction = self._vectors.collect(among, of_sum, inputs)
        after = self._vectors.unmasking
        self.spent.add(Spent(after.seconds - before.seconds, after.cpu_seconds - before.cpu_seconds))
        with self.spent.measure():
            ciphertexts = inputs.adder.close(correction.vector)
        self.spent.add(encryptor.ahead())
        contributors = sorted(int(party) for party in correction.contributors)
        with session.phase(terms.round, _TOTAL):
            message = scheme.kinds.total(PURPOSE, contributors, ciphertexts)
            session.broadcast([terms.asker], message, terms.round, PURPOSE)
        if terms.asker not in session.present:
            raise SumAbandoned("the asker has dropped out")
        return Served(correction.contributors)

    def _relay_key(self, session: ServerSession, terms: ScoreTerms, asked: frozenset[PartyId]) -> bytes:
        """The asker's key, on its way to the scorers that were asked."""
        session.conversation.admit(key_frame_bytes(self._scheme.key_bytes))
        with session.phase(terms.round, _KEY):
            answers = session.among([terms.asker]).gather(self._scheme.kinds.key, terms.round, _KEY)
            if terms.asker not in answers:
                raise SumAbandoned("the asker has dropped out")
            session.broadcast(asked, answers[terms.asker], terms.round, _KEY)
        return answers[terms.asker].key


class _Inputs:
    """Uploads as the masked sum takes them: ciphertexts go to the adder, and the masked sum gets zeros."""

    def __init__(self, scheme: Scheme, layout: EncryptedLayout, adder: Adder) -> None:
        self.adder = adder
        self._scheme, self._layout = scheme, layout
        self._zeros = layout.group.zeros(layout.entries)

    @property
    def expected(self) -> type[wire.Message]:
        return self._scheme.kinds.scores

    def read(self, party: PartyId, message: wire.Message) -> MaskedInput:
        if not isinstance(message, EncryptedScores):
            raise TypeError(f"{type(message).__name__} instead of encrypted scores")
        try:
            require_ciphertexts(message.ciphertexts, self._scheme, self._layout)
            self.adder.add(message.ciphertexts)
        except PeerMisbehaved as problem:
            raise PeerMisbehaved(f"client {party} sends no encrypted scores: {problem}") from None
        return MaskedInput(message.purpose, self._zeros, message.peers)


def require_ciphertexts(ciphertexts: Sequence[bytes], scheme: Scheme, layout: EncryptedLayout) -> None:
    """`PeerMisbehaved` unless there are as many as a vector takes, none too long."""
    if len(ciphertexts) != scheme.ciphertexts(layout):
        raise PeerMisbehaved(f"{len(ciphertexts)} ciphertexts instead of {scheme.ciphertexts(layout)}")
    if any(len(one) > scheme.ciphertext_bytes for one in ciphertexts):
        raise PeerMisbehaved(f"a ciphertext of more than {scheme.ciphertext_bytes} bytes")

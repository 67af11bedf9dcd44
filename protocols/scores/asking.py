"""Asking: how a batch begins. The asker's own word, which the server carries and cannot read, forge or repeat.

The asker draws a secret for every scorer and one that all of them share, and seals them for each scorer together with
the queries and the digest of the terms. A scorer answers only what it can open and what is of its own terms: a server
cannot ask by itself, has no say in the queries, and cannot have a batch answered twice, since the key of an asking
belongs to one round of one session.

All scorers were asked the same. The common secret that parties go on with is not the one that was drawn, but a key from
it that is bound to the terms, the queries and what is attached to them (`_bound`). Every backend puts it into what
scorers must agree on: the keys of a masked sum, or those of their exchanges. So an asker that seals a query for one
scorer and another one for the rest, to read the scores of that one in the sum, gets no sum: the keys of scorers that
were asked different things differ, and for two askings with one key it would need a collision of SHA-256. A mere digest
of the queries would do the same, but whoever meets it could test guesses of the queries. A key from the drawn secret is
uniform to everybody that was not asked.

Who asks, whom, how much and when is visible to the server; so is the length of the queries.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from protocols.foundation.digests import digest
from protocols.foundation.errors import PeerMisbehaved, SumAbandoned
from protocols.foundation.identifiers import PartyId
from protocols.primitives.keys import KeyContext, derive_key
from protocols.primitives.prg import KEY_BYTES
from protocols.scores.messages import MAX_QUERY_BYTES, PURPOSE, AskScores, ScoresAsked
from protocols.scores.terms import ScoreTerms
from protocols.session.client_session import ClientSession
from protocols.session.server_session import ServerSession

PROTOCOL: Final = "secure-kg/scores"
VERSION: Final = 1
STEP: Final = "ask"
_DIGEST_BYTES: Final = 32
_ASKED: Final = b"secure-kg/scores/asked/1"


class SealedChannels(Protocol):
    """Channels to other parties of the session (`protocols.session.channels.ClientChannels`)."""

    @property
    def peers(self) -> frozenset[PartyId]: ...

    def seal_for(self, peer: PartyId, use: str, secret: bytes) -> bytes: ...

    def open_from(self, peer: PartyId, use: str, sealed: bytes) -> bytes: ...


@dataclass(frozen=True, slots=True)
class BatchSecrets:
    """Secrets of one batch. `own`: known to one scorer and the asker. `common`: to the asker and all scorers that were
    asked the same."""

    own: bytes = field(repr=False)
    common: bytes = field(repr=False)

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("secrets are not serialised")


@dataclass(frozen=True, slots=True)
class Asked:
    """An asking as a scorer opens it."""

    secrets: BatchSecrets
    queries: bytes = field(repr=False)
    attached: bytes = b""
    """What a backend has the asker say beside its queries, e.g. which public key is its own."""


def ask(
    session: ClientSession, channels: SealedChannels, terms: ScoreTerms, queries: bytes, attached: bytes = b""
) -> Mapping[PartyId, BatchSecrets]:
    """The asker's side: draw and send the secrets; by scorer. `attached`: of a length that all parties know."""
    if len(queries) > MAX_QUERY_BYTES:
        raise ValueError(f"queries of {len(queries)} bytes: a batch may have {MAX_QUERY_BYTES}")
    common = secrets.token_bytes(KEY_BYTES)
    drawn = {scorer: secrets.token_bytes(KEY_BYTES) for scorer in terms.scorers}
    # A scorer without a channel is a dropout of the set-up: nobody can ask it.
    sealed = {
        int(scorer): channels.seal_for(scorer, _use(terms), terms.digest + own + common + attached + queries)
        for scorer, own in drawn.items()
        if scorer in channels.peers
    }
    with session.phase(terms.round, STEP):
        session.send(AskScores(PURPOSE, sealed), terms.round)
    bound = _bound(common, session, terms, attached, queries)
    return {scorer: BatchSecrets(own, bound) for scorer, own in drawn.items()}


def asked(session: ClientSession, channels: SealedChannels, terms: ScoreTerms, attached: int = 0) -> Asked:
    """A scorer's side: wait for the asker's word. `attached`: how many bytes there are beside the queries."""
    with session.phase(terms.round, STEP):
        message = session.receive(ScoresAsked, terms.round, PURPOSE)
    try:
        opened = channels.open_from(terms.asker, _use(terms), message.sealed)
    except PeerMisbehaved:
        raise PeerMisbehaved(f"client {terms.asker} has not asked this: the queries cannot be opened") from None
    theirs, rest = opened[:_DIGEST_BYTES], opened[_DIGEST_BYTES:]
    if theirs != terms.digest or len(rest) < 2 * KEY_BYTES + attached:
        raise PeerMisbehaved(f"client {terms.asker} asks under other terms, or scores with another table")
    beside, queries = rest[2 * KEY_BYTES :][:attached], rest[2 * KEY_BYTES + attached :]
    common = _bound(rest[KEY_BYTES : 2 * KEY_BYTES], session, terms, beside, queries)
    return Asked(BatchSecrets(rest[:KEY_BYTES], common), queries, beside)


def relay(session: ServerSession, terms: ScoreTerms) -> frozenset[PartyId]:
    """The server's side: from the asker to every scorer that is present; to whom.

    `PeerMisbehaved` for an asker that leaves out one of them: it would be missing from the sum like a dropout, and the
    asker would have chosen over whom it is opened. It asks those that have dropped out since the set-up, too: it does
    not know of them.
    """
    session.conversation.admit(len(terms.scorers) * (MAX_QUERY_BYTES + 8192))
    with session.phase(terms.round, STEP):
        answers = session.among([terms.asker]).gather(AskScores, terms.round, STEP)
        if terms.asker not in answers:
            raise SumAbandoned("the asker has dropped out")
        sealed = answers[terms.asker].sealed
        present = session.present & frozenset(terms.scorers)
        if left_out := sorted(int(party) for party in present if int(party) not in sealed):
            raise PeerMisbehaved(f"client {terms.asker} has not asked client {left_out[0]}, which is there to be asked")
        messages = {party: ScoresAsked(PURPOSE, sealed[int(party)]) for party in present}
        session.dropout(session.conversation.deliver(messages, terms.round), STEP)
        return frozenset(messages) & session.present


def key_of(secret: bytes, session: ClientSession, terms: ScoreTerms, party: PartyId, use: str) -> bytes:
    """A 256-bit key from a secret of the batch, for one use and the vector of one party."""
    context = KeyContext(
        PROTOCOL, VERSION, session.conversation.session, terms.round, party, terms.asker, use, terms.digest
    )
    return derive_key(secret, context)


def agreed(secrets_: BatchSecrets, session: ClientSession, terms: ScoreTerms) -> bytes:
    """What all scorers of a batch must have alike before they add up (`SumTerms.model`); uniform to the server."""
    return key_of(secrets_.common, session, terms, terms.asker, "asked alike")


def _bound(drawn: bytes, session: ClientSession, terms: ScoreTerms, attached: bytes, queries: bytes) -> bytes:
    """The common secret of those that were asked the same, under the same terms."""
    binding = digest(_ASKED, terms.digest, attached, queries)
    context = KeyContext(
        PROTOCOL, VERSION, session.conversation.session, terms.round, terms.asker, terms.asker, "common", binding
    )
    return derive_key(drawn, context)


def _use(terms: ScoreTerms) -> str:
    """Channel keys are single-use: no session has two batches of one round."""
    return f"ask scores/{terms.round}"

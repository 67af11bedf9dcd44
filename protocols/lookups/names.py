"""Names of positions on request: from whoever holds one and is willing to name it, without the asker learning who.

The asker seals k positions for every other client. Each writes a fresh weight, the weight times a hash of the name and
the weight times the name for every position that it names (`protocols.alignment.psu.names`), and nothing for others.
What comes back is the sum over all of them, which the server opens under the asker's masks (`protocols.scores.masked`).
The weight of a named position is uniform however many have named it, so the asker divides and does not see how many.

A total that the server has changed is no name: the masks are uniform to it, so weight and name are moved at random,
and the hash of what is read is right in one case of 2^61. The same happens if two clients give one position two names.

A client's rule about what it names is its own; it shows in nothing but the names that are missing. Names that one set
of clients gives and another one does not would be those of single clients, so that there is one set for all lookups
(`protocols.scores.covering`).
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from protocols.alignment.interface import Positions
from protocols.alignment.psu.names import MAX_NAME_BYTES, POSITION_ENTRIES, read, written
from protocols.foundation.digests import digest, encode_parties, length_prefixed
from protocols.foundation.errors import PeerMisbehaved, SumAbandoned
from protocols.foundation.frame_sizes import array_bytes, frame_bytes, text_bytes
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.lookups.messages import NamesTotal
from protocols.primitives.group import FieldArray, PrimeField
from protocols.primitives.prg import KEY_BYTES, combine_keystreams
from protocols.scores import asking, batches
from protocols.scores.budget import announced
from protocols.scores.covering import Covering, Kept, MemoryCovers
from protocols.scores.interface import Answer, ScoreClient, ScoreQueries, Scores, ScoreServer, ScoringReport, Served
from protocols.scores.messages import PURPOSE, checked_contributors, contributors_bytes
from protocols.scores.terms import ScoreTerms
from protocols.session.client_session import ClientSession
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.openings import commit
from protocols.sums.secagg.vectors import VectorClient, VectorServer
from protocols.sums.terms import SumTerms, VectorLayout

MOST_NAMES: Final = 1000
POSITION_BYTES: Final = 4
"""Of a position in a request."""
_FIELD: Final = PrimeField()
_MASK: Final = "names mask"
_DOMAIN: Final = b"secure-kg/lookups/names/1"
_TOTAL: Final = f"total/{PURPOSE}"

NamePositions: TypeAlias = Callable[[Sequence[int]], Mapping[int, str]]
"""A client's own work: from positions of the union to the names of those that it holds and is willing to name."""


def names_terms(
    round_id: RoundId, clients: tuple[PartyId, ...], asker: PartyId, count: int, table: bytes
) -> ScoreTerms:
    """Of `count` names. `table`: digest of the union whose positions they are."""
    if not 1 <= count <= MOST_NAMES:
        raise ValueError(f"{count} names, not in 1..{MOST_NAMES}")
    return ScoreTerms(
        round=round_id, clients=clients, asker=asker, positions=count, top=1, table=digest(_DOMAIN, table)
    )


def sum_terms(terms: ScoreTerms, agreed: bytes = b"", state: bytes = b"") -> SumTerms[VectorLayout]:
    """The masked sum of a lookup. The server has neither `agreed` nor `state` (`protocols.scores.masked`)."""
    layout = VectorLayout(_FIELD, terms.positions * POSITION_ENTRIES)
    return SumTerms(terms.round, PURPOSE, terms.scorers, layout, agreed, state)


class NamesClient:
    """One client's part in the lookups of one session. `vectors` holds the session's channels; `covering`: over whom
    it helps to open names; None: over one set of clients in this session."""

    def __init__(self, vectors: VectorClient, covering: Covering | None = None) -> None:
        self._vectors, self._covering = vectors, covering or Covering(Kept(MemoryCovers()))
        self._state_key = secrets.token_bytes(KEY_BYTES)

    def ask(self, session: ClientSession, terms: ScoreTerms, positions: Sequence[int]) -> list[str]:
        """The asker's side: the names of different `positions`; empty where nobody names one."""
        if len(positions) != terms.positions or len(set(positions)) != len(positions):
            raise ValueError(f"{len(positions)} positions, not all different, where {terms.positions} are asked for")
        request = np.asarray(positions, dtype="<u4").tobytes()
        return batches.asked_again(session, terms, lambda one: self._ask(session, one, request))

    def answer(self, session: ClientSession, terms: ScoreTerms, naming: NamePositions) -> None:
        """Another client's side."""
        batches.score(_Naming(self, naming), session, terms, _never_scored)

    def _ask(self, session: ClientSession, terms: ScoreTerms, request: bytes) -> list[str]:
        drawn = asking.ask(session, self._vectors.session, terms, request)
        session.conversation.admit(_total_bytes(terms))
        with session.phase(terms.round, _TOTAL):
            total = session.receive(NamesTotal, terms.round, PURPOSE)
        contributors = checked_contributors(total.contributors, terms)
        vector = total.vector
        try:
            _FIELD.require(vector, terms.positions * POSITION_ENTRIES)
        except ValueError:
            raise PeerMisbehaved("names of another length") from None
        keys = [asking.key_of(drawn[scorer].own, session, terms, scorer, _MASK) for scorer in contributors]
        combine_keystreams(vector, _FIELD, subtracted=keys)
        return read(vector, terms.positions)

    def give(self, session: ClientSession, terms: ScoreTerms, naming: NamePositions) -> None:
        """One attempt of `answer`."""
        asked = asking.asked(session, self._vectors.session, terms)
        alike = asking.agreed(asked.secrets, session, terms)
        depends_on = length_prefixed(terms.table, encode_parties([terms.asker]), asked.queries)
        state = commit(self._state_key, PURPOSE, depends_on)
        of_sum = replace(sum_terms(terms, alike, state), announced=announced(session, self._covering, terms))
        self._vectors.prepare(session, of_sum)
        vector = _written(naming, _positions(asked.queries, terms), terms)
        mask = asking.key_of(asked.secrets.own, session, terms, session.party, _MASK)
        self._vectors.contribute(session, of_sum, vector, [mask], self._covering.guard(terms, None))


class _Naming(ScoreClient):
    """A lookup as `batches.score` takes it."""

    def __init__(self, client: NamesClient, naming: NamePositions) -> None:
        self._client, self._naming = client, naming

    def ask(self, session: ClientSession, terms: ScoreTerms, queries: bytes, own: Scores) -> Answer:
        raise TypeError("names are asked for by NamesClient.ask")

    def score(self, session: ClientSession, terms: ScoreTerms, scoring: ScoreQueries) -> ScoringReport:
        self._client.give(session, terms, self._naming)
        return ScoringReport()


class NamesServer(ScoreServer):
    """The server's part."""

    def __init__(self, vectors: VectorServer) -> None:
        super().__init__()
        self._vectors = vectors

    def serve(self, session: ServerSession, terms: ScoreTerms) -> Served:
        asking.relay(session, terms)
        of_sum, among = sum_terms(terms), session.among(terms.scorers)
        self._vectors.prepare(among, of_sum)
        total = self._vectors.collect(among, of_sum)
        contributors = sorted(int(party) for party in total.contributors)
        with session.phase(terms.round, _TOTAL):
            message = NamesTotal(PURPOSE, contributors, total.vector)
            session.broadcast([terms.asker], message, terms.round, PURPOSE)
        if terms.asker not in session.present:
            raise SumAbandoned("the asker has dropped out")
        return Served(total.contributors)


def _positions(request: bytes, terms: ScoreTerms) -> list[int]:
    if len(request) != POSITION_BYTES * terms.positions:
        raise PeerMisbehaved(f"client {terms.asker} asks for names in another form")
    positions: list[int] = np.frombuffer(request, dtype="<u4").tolist()
    if len(set(positions)) != len(positions):
        raise PeerMisbehaved(f"client {terms.asker} asks for a name twice")
    return positions


def _written(naming: NamePositions, positions: list[int], terms: ScoreTerms) -> FieldArray:
    """A name that is too long stays out: said aloud it would tell who holds it."""
    found = naming(positions)
    places = {position: place for place, position in enumerate(positions)}
    short = {at: name for at, name in found.items() if len(name.encode("utf-8", "surrogatepass")) <= MAX_NAME_BYTES}
    named = sorted((places[position], name) for position, name in short.items() if position in places)
    own = np.array([place for place, _ in named], dtype=np.int64)
    return written(Positions(terms.positions, own, terms.table), [name for _, name in named])


def _never_scored(queries: bytes) -> Scores:
    raise TypeError("a lookup of names has no scores")


def _total_bytes(terms: ScoreTerms) -> int:
    entries = array_bytes(terms.positions * POSITION_ENTRIES, 8)
    return frame_bytes(text_bytes(PURPOSE), contributors_bytes(terms), entries)

"""The private set union as a conversation: the secure twin of `protocols.alignment.plain`.

Parties, adversary, what is revealed, assumed and not covered: see the package, `protocols.alignment.psu`. An attempt is
one masked sum of the clients' tables (`protocols.sums.secagg.vectors`), from which the server reads the union, and one
answer to all of them. Then the clients vote on the answer (`vote`): whatever a client finds wrong with it that depends
on its own names is told to nobody, and either all go on or all stop in the same words.
"""

from collections.abc import Callable, Collection
from itertools import count
from typing import TypeAlias

import numpy as np

from protocols.alignment.interface import Positions, Union
from protocols.alignment.psu.attempts import Attempt, UnionPlaces, UnionTerms, union_places_bytes
from protocols.alignment.psu.layout import TableLayout
from protocols.alignment.psu.places import places_of, positions_in
from protocols.alignment.psu.table import Peeled, PeelFailed, peel_in_rounds, write
from protocols.alignment.psu.tags import tags_of
from protocols.alignment.psu.vote import count_votes, vote
from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved, UnexpectedMessage
from protocols.foundation.identifiers import SETUP
from protocols.primitives.group import FieldArray, GroupVector, PrimeField
from protocols.session.client_session import ClientSession
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.keys import ClientKeys, ServerKeys

STEP = "union places"
AnswerTo: TypeAlias = Callable[[GroupVector, Attempt], UnionPlaces]
"""The answer to a sum of tables."""


def join(
    session: ClientSession,
    keys: ClientKeys,
    terms: UnionTerms,
    names: Collection[str],
    objection: str = "",
    state: bytes = b"",
) -> Positions:
    """The client's side: the positions of `names`, in their order; a name that stands twice has its position twice.

    A client without names takes part like the others. `objection`: a reason of the caller's own, by the names it holds,
    why no alignment may come of this; it is told to nobody. `AlignmentRefused` if any client objects. `state`: the
    client's commitment to its names, the same in every attempt (`protocols.sums.secagg.openings`): no attempt is then
    opened over other clients than the one before.
    """
    different = {name: index for index, name in enumerate(dict.fromkeys(names))}
    for number in count():
        attempt = Attempt.of(number, terms.bound, session.conversation.session, keys.key.commitment)
        of_tables = attempt.terms(terms.participants, state)
        keys.vectors.prepare(session, of_tables)
        tags = tags_of(different, attempt.tag_key(keys.key))
        keys.vectors.contribute(session, of_tables, _table(tags, attempt.layout))
        session.conversation.admit(union_places_bytes(attempt.purpose, attempt.layout.cells))
        with session.phase(SETUP, STEP):
            answer = session.receive(UnionPlaces, SETUP, attempt.purpose)
        if answer.purpose != attempt.purpose:
            raise UnexpectedMessage(f"the server answered '{answer.purpose}' where '{attempt.purpose}' was due")
        if answer.size:
            break
    looked_up = attempt.look_up(answer, tags)
    found, objection = looked_up.positions, objection or looked_up.objection
    vote(session, keys, terms.participants, found.digest, objection)
    if len(different) == len(names):
        return found
    expanded = found.own[np.array([different[name] for name in names], dtype=np.int64)]
    return Positions(found.union_size, expanded, found.digest)


def _table(tags: FieldArray, layout: TableLayout) -> FieldArray:
    """A client's table, written into the frame that will carry it: with many names there is no room for two."""
    return write(tags, layout, wire.array_in_frame(layout.entries, PrimeField().dtype))


def serve(session: ServerSession, keys: ServerKeys, terms: UnionTerms, answer_to: AnswerTo | None = None) -> Union:
    """The server's side: the union of those whose tables are in the sum.

    How the vote ends it hears from the clients. `answer_to`: None: answers with places that are drawn afresh.
    """
    vectors = keys.vectors
    for number in count():
        attempt = Attempt.of(number, terms.bound, session.conversation.session, keys.commitment)
        of_tables = attempt.terms(terms.participants)
        vectors.prepare(session, of_tables)
        total = vectors.collect(session, of_tables)
        answer = (answer_to or answer_of)(total.vector, attempt)
        with session.phase(SETUP, STEP):
            session.broadcast(total.contributors, answer, SETUP, STEP)
        if answer.size:
            break
    union = Union(answer.size, attempt.digest(answer))
    count_votes(session.among(total.contributors), vectors, terms.participants, union.digest)
    return union


def answer_of(total: GroupVector, attempt: Attempt) -> UnionPlaces:
    """What clients are sent for a sum of tables. Tags and weights go no further than this."""
    try:
        peeled = _peeled(total, attempt)
        return UnionPlaces(attempt.purpose, peeled.size, places_of(peeled, attempt.layout))
    except PeelFailed:
        return attempt.again()


def answer_again(total: GroupVector, attempt: Attempt, said: UnionPlaces | None) -> UnionPlaces:
    """For an audit: the answer `said` if a server may give it to this sum of tables, and one of its own otherwise."""
    own = answer_of(total, attempt)
    if said is None or (said.purpose, said.size, len(said.places)) != (own.purpose, own.size, len(own.places)):
        return own
    if not own.size:
        return own
    tags, _ = _peeled(total, attempt).in_order()
    positions = positions_in(said.places, said.size, tags, attempt.layout)
    return said if len(np.unique(positions)) == len(tags) else own


def _peeled(total: GroupVector, attempt: Attempt) -> Peeled:
    peeled = peel_in_rounds(total.astype(np.uint64, copy=False), attempt.layout)
    if not peeled.size:
        raise PeerMisbehaved("no client has any name to align")
    return peeled

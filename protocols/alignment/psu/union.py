"""The private set union as a conversation: the secure twin of `protocols.alignment.plain`.

Parties, adversary, what is revealed, assumed and not covered: see the package, `protocols.alignment.psu`. An attempt is
one masked sum of the clients' tables (`protocols.sums.secagg.vectors`), from which the server reads the union, and one
answer to all of them. Then the clients vote on the answer (`vote`): whatever a client finds wrong with it that depends
on its own names is told to nobody, and either all go on or all stop in the same words.
"""

from collections.abc import Collection
from dataclasses import replace
from itertools import count

import numpy as np

from protocols.alignment.interface import Positions, Union
from protocols.alignment.psu.attempts import Attempt, UnionPlaces, union_places_bytes
from protocols.alignment.psu.layout import TableLayout
from protocols.alignment.psu.places import places_of
from protocols.alignment.psu.table import PeelFailed, peel_in_rounds, write
from protocols.alignment.psu.tags import tags_of
from protocols.alignment.psu.vote import count_votes, vote
from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import PeerMisbehaved, UnexpectedMessage
from protocols.foundation.identifiers import SERVER, SETUP, PartyId
from protocols.primitives.group import FieldArray, GroupVector, PrimeField
from protocols.session.conversation import Conversation
from protocols.session.group_key import GroupKey
from protocols.session.patience import Patience
from protocols.session.turns import Silent
from protocols.sums.secagg.vectors import VectorClient, VectorServer

STEP = "union places"


def join(
    conversation: Conversation,
    vectors: VectorClient,
    key: GroupKey,
    names: Collection[str],
    clients: tuple[PartyId, ...],
    bound: int,
    deadline: Deadline,
    objection: str = "",
    state: bytes = b"",
) -> Positions:
    """The client's side: the positions of `names`, in their order; a name that stands twice has its position twice.

    `clients`, all that may take part, and `bound`, how many names the union may have in the first attempt, are public
    and part of every party's own configuration. A client without names takes part like the others. `objection`: a
    reason of the caller's own, by the names it holds, why no alignment may come of this; it is told to nobody.
    `AlignmentRefused` if any client objects. `state`: the client's commitment to its names, the same in every attempt
    (`protocols.sums.secagg.openings`): no attempt is then opened over other clients than the one before.
    """
    different = {name: index for index, name in enumerate(dict.fromkeys(names))}
    for number in count():
        attempt = Attempt.of(number, bound, conversation.session, key.commitment)
        task = replace(attempt.task(clients), state=state)
        vectors.prepare(conversation, task, deadline)
        tags = tags_of(different, attempt.tag_key(key))
        vectors.contribute(conversation, task, _table(tags, attempt.layout), deadline)
        conversation.admit(union_places_bytes(attempt.purpose, attempt.layout.cells))
        with conversation.transport.phase(SETUP, STEP):
            answer = conversation.receive(SERVER, UnionPlaces, SETUP, deadline, attempt.purpose)
        if answer.purpose != attempt.purpose:
            raise UnexpectedMessage(f"the server answered '{answer.purpose}' where '{attempt.purpose}' was due")
        if answer.size:
            break
    looked_up = attempt.look_up(answer, tags)
    found, objection = looked_up.positions, objection or looked_up.objection
    vote(conversation, vectors, key, clients, found.digest, objection, deadline)
    if len(different) == len(names):
        return found
    expanded = found.own[np.array([different[name] for name in names], dtype=np.int64)]
    return Positions(found.union_size, expanded, found.digest)


def _table(tags: FieldArray, layout: TableLayout) -> FieldArray:
    """A client's table, written into the frame that will carry it: with many names there is no room for two."""
    return write(tags, layout, wire.array_in_frame(layout.entries, PrimeField().dtype))


def serve(
    conversation: Conversation,
    vectors: VectorServer,
    commitment: bytes,
    clients: tuple[PartyId, ...],
    present: Collection[PartyId],
    bound: int,
    patience: Patience,
    silent: Silent,
) -> Union:
    """The server's side: the union of those whose tables are in the sum. How the vote ends it hears from the clients.

    `commitment`: to the clients' key (`protocols.session.group_key`). `present`: those of `clients` that are still
    there; it may shrink meanwhile. Who falls silent is reported to `silent` and left out of what follows.
    """
    gone: set[PartyId] = set()

    def lost(parties: Collection[PartyId], step: str) -> None:
        gone.update(parties)
        silent(parties, step)

    for number in count():
        attempt = Attempt.of(number, bound, conversation.session, commitment)
        task = attempt.task(clients)
        vectors.prepare(conversation, task, set(present) - gone, patience, lost)
        total = vectors.collect(conversation, task, patience, lost, set(present) - gone)
        answer = answer_of(total.vector, attempt)
        with conversation.transport.phase(SETUP, STEP):
            if unreached := conversation.broadcast((set(present) - gone) & total.contributors, answer, SETUP):
                lost(unreached, STEP)
        if answer.size:
            break
    union = Union(answer.size, attempt.digest(answer))
    there = (set(present) - gone) & total.contributors
    count_votes(conversation, vectors, clients, union.digest, there, patience, lost)
    return union


def answer_of(total: GroupVector, attempt: Attempt) -> UnionPlaces:
    """What clients are sent for a sum of tables. Tags and weights go no further than this."""
    try:
        peeled = peel_in_rounds(total.astype(np.uint64, copy=False), attempt.layout)
        if not peeled.size:
            raise PeerMisbehaved("no client has any name to align")
        return UnionPlaces(attempt.purpose, peeled.size, places_of(peeled, attempt.layout))
    except PeelFailed:
        return attempt.again()

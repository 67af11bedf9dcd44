"""The union in clear: twin of a private set union. The server sees each client's names, and so who holds what.

Parties:     n clients, 1 server.
Adversary:   none.
Reveals:     every client's names, to the server. To a client the size of the union, the positions of its own names, and
             for any name it can guess, whether somebody holds it (it can hash the name and look).
Assumes:     authentic channels.
Not covered: any privacy of names towards the server. What is covered, whatever the server does: all clients that can
             add up have found their positions in the same list (`Positions.digest`).
Reference:   FedR (Zhang et al., Findings of EMNLP 2022), algorithm 1, line 1.
Deviations:  in clear, where the paper assumes a private set union.
"""

import hashlib
from collections.abc import Collection
from typing import Any, Final

import numpy as np

from protocols.alignment.interface import Positions, Union, list_digest
from protocols.foundation import wire
from protocols.foundation.disclosure import Disclosure, Field, Learned, Subject
from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import SETUP
from protocols.session.client_session import ClientSession
from protocols.session.server_session import ServerSession

TAG_BYTES: Final = 16
_DOMAIN: Final = b"secure-kg/plain union/1/"
MAX_NAMES_BYTES: Final = 1 << 26


@wire.message(0x0211, MAX_NAMES_BYTES)
class ClearNames(wire.Message, frozen=True):
    """Client to server: the client's own names."""

    names: list[str]

    def __post_init__(self) -> None:
        wire.require(len(set(self.names)) == len(self.names), "a name stands twice")


@wire.message(0x0213, wire.MAX_FRAME_BYTES)
class ClearUnion(wire.Message, frozen=True):
    """Server to client, the same for all: the tags of all names [union, 16], in the order of the names.

    A tag is a hash of the name. It lets a client find its own names without being told the others'.
    """

    tags: np.ndarray[Any, Any]

    def __post_init__(self) -> None:
        wire.require_array(self.tags, "<u1", ndim=2)
        wire.require(self.tags.shape[1] == TAG_BYTES, "tags of wrong length")


def tag_of(name: str) -> bytes:
    return hashlib.sha256(_DOMAIN + name.encode()).digest()[:TAG_BYTES]


def join(session: ClientSession, names: Collection[str]) -> Positions:
    """The client's side."""
    session.conversation.admit(wire.MAX_FRAME_BYTES)  # how many names the others have, nobody knows beforehand
    with session.phase(SETUP, "union"):
        session.send(ClearNames(list(names)), SETUP)
        answer = session.receive(ClearUnion, SETUP)
    return Positions.in_list(answer.tags, [tag_of(name) for name in names])


def serve(session: ServerSession) -> Union:
    """The server's side: the union of those who answered."""
    step = "union"
    session.conversation.admit(MAX_NAMES_BYTES)
    with session.phase(SETUP, step):
        lists = session.gather(ClearNames, SETUP, step)
        union = {name for answer in lists.values() for name in answer.names}
        if not union:
            raise PeerMisbehaved("no client has any name to align")
        tags = np.frombuffer(b"".join(map(tag_of, sorted(union))), dtype=np.uint8).reshape(-1, TAG_BYTES)
        session.broadcast(lists.keys(), ClearUnion(tags), SETUP, step)
    return Union(len(union), list_digest(tags))


PLAIN_UNION: Final = Disclosure(
    title="the plain union",
    place="alignment/plain",
    choice="clients show the server their names",
    in_brief="alignment was plain: the server saw every client's {shared} names",
    learned={
        Subject.NAMES: Learned(
            "every client's (plain alignment)",
            "how many there are, the positions of its own, and whether a name it guesses is in the union",
        ),
        Subject.PARTICIPATION: Learned("who took part"),
    },
    against="nobody: plain alignment hides nothing from the server",
    with_a_client="nothing: the server reads all by itself",
    assumes="authentic channels",
    not_covered="any privacy of names towards the server",
    fields={
        ClearNames: {"names": Field("clear", "a single client's own names")},
        ClearUnion: {"tags": Field("aggregate", "hashes of all names, which it has read before")},
    },
)

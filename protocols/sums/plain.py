"""The sum in clear: twin of `protocols.sums.secagg`. The server sees each client's vector.

Parties:     n clients, 1 server.
Adversary:   none.
Reveals:     every client's vector, to the server.
Assumes:     authentic channels.
Not covered: any privacy.
Reference:   FedR (Zhang et al., Findings of EMNLP 2022), algorithm 1, line 8, as its public code does it.
Deviations:  fixed point instead of floats, see below.

Everything but the masks is the same, fixed-point encoding and noise (`protocols.sums.pipeline`) included. So a run and
its twin give the same result to the last bit, any difference is a fault, and what the twins cost differs by
cryptography alone. What the encoding itself loses is measured by every client against its own values
(`ContributionReport.max_error`).
"""

from typing import Any, Final

import numpy as np

from protocols.foundation import wire
from protocols.foundation.disclosure import WHAT_MEANS_SHOW, WHETHER_BEST, Disclosure, Field, Fields, Learned, Subject
from protocols.foundation.errors import PeerMisbehaved, SumAbandoned
from protocols.foundation.frame_sizes import array_bytes, frame_bytes, text_bytes
from protocols.foundation.identifiers import PartyId
from protocols.foundation.spent import Spent
from protocols.foundation.words import clients_have
from protocols.primitives.group import VECTOR_TYPES, GroupVector
from protocols.session.client_session import ClientSession
from protocols.session.conversation import MAX_PURPOSE
from protocols.session.server_session import ServerSession
from protocols.sums import pipeline
from protocols.sums.interface import (
    Collected,
    Contribution,
    ContributionReport,
    MayOpen,
    SumClient,
    SumLayout,
    SumServer,
)
from protocols.sums.terms import SumTerms


@wire.message(0x0201, wire.MAX_FRAME_BYTES)
class ClearInput(wire.Message, frozen=True):
    """Client to server, once per round and purpose: the encoded input, unmasked."""

    purpose: str
    vector: np.ndarray[Any, Any]

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
        wire.require_array(self.vector, *VECTOR_TYPES, ndim=1)


class PlainSumClient(SumClient):
    def setup(self, session: ClientSession) -> None:
        """Nothing to agree on."""

    def prepare(self, session: ClientSession, terms: SumTerms[SumLayout]) -> None:
        """Nothing to agree on."""

    def contribute(
        self,
        session: ClientSession,
        terms: SumTerms[SumLayout],
        contribution: Contribution,
        may_open: MayOpen | None = None,
    ) -> ContributionReport:
        """`may_open` is not asked: what is sent in clear is open."""
        encoding = Spent()
        with encoding.measure():
            encoded = pipeline.encode(terms, contribution)
        with session.phase(terms.round, f"input/{terms.purpose}"):
            session.send(ClearInput(terms.purpose, terms.layout.group.to_wire(encoded.vector)), terms.round)
        return ContributionReport(encoded.clipped, encoded.max_error, encoding)


class PlainSumServer(SumServer[Collected]):
    """`min_contributors`: the twin abandons a sum where the secure sum would, so that the two stay comparable."""

    def __init__(self, min_contributors: int = 1) -> None:
        self._min_contributors = min_contributors
        self._asked: frozenset[PartyId] = frozenset()
        self._unmasking = Spent()

    @property
    def unmasking(self) -> Spent:
        return self._unmasking

    def setup(self, session: ServerSession) -> None:
        """Nothing to agree on."""

    def prepare(self, session: ServerSession, terms: SumTerms[SumLayout]) -> None:
        self._asked, layout = session.present & frozenset(terms.participants), terms.layout
        session.conversation.admit(clear_input_bytes(terms.purpose, *layout.group.on_wire(layout.entries)))

    def collect(self, session: ServerSession, terms: SumTerms[SumLayout]) -> Collected:
        layout, contributors = terms.layout, set[PartyId]()
        expected = self._asked & session.present
        running, step = layout.group.zeros(layout.entries), f"input/{terms.purpose}"
        with session.phase(terms.round, step):
            for party, message in session.gather_each(expected, ClearInput, terms.round, step):
                with session.bearing(party), self._unmasking.measure():
                    self._take(running, message, terms, party)
                    contributors.add(party)
                del message  # before the next one arrives
        session.dropout(expected - contributors, step)
        if len(contributors) < self._min_contributors:
            raise SumAbandoned(f"{clients_have(len(contributors))} sent an input, {self._min_contributors} are needed")
        with self._unmasking.measure():
            return Collected(layout.decode(running), frozenset(contributors))

    def _take(self, running: GroupVector, message: ClearInput, terms: SumTerms[SumLayout], party: PartyId) -> None:
        layout = terms.layout
        try:
            vector = layout.group.from_wire(message.vector, layout.entries)
        except ValueError:
            raise PeerMisbehaved(f"client {party} contributed a vector of another length or ring") from None
        if message.purpose != terms.purpose:
            raise PeerMisbehaved(f"client {party} contributed to another sum")
        layout.group.add_into(running, vector)


def clear_input_bytes(purpose: str, entries: int, entry_bytes: int) -> int:
    """The size of a `ClearInput` frame."""
    return frame_bytes(text_bytes(purpose), array_bytes(entries, entry_bytes))


PLAIN_INPUT: Final[Fields] = {
    ClearInput: {
        "purpose": Field("public", "which sum a message belongs to"),
        "vector": Field("clear", "a single client's own numbers"),
    }
}
PLAIN_SUMS: Final = Disclosure(
    title="plain sums",
    place="sums/plain",
    choice="the server reads every client's vector",
    in_brief="aggregation was plain: the server read every client's rows",
    learned={
        Subject.ROWS: Learned("every client's (plain sums hide nothing)", "the mean rows"),
        Subject.HOLDERS: Learned("which rows each client holds, by position", WHAT_MEANS_SHOW),
        Subject.METRICS: Learned("every client's", WHETHER_BEST),
        Subject.PARTICIPATION: Learned("who took part"),
    },
    against="nobody: plain sums protect nothing, they are there to be measured against",
    with_a_client="nothing: the server reads all by itself",
    assumes="authentic channels",
    not_covered="any privacy",
    fields=PLAIN_INPUT,
)

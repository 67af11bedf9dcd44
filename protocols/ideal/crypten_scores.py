"""The server's view of a batch that CrypTen computes (`protocols.scores.crypten`), written from public sizes.

The server sees two things, its messages and what the group asks its dealer for. What stands in place of what:

asking       as in every batch (`scores`)
joining      Public keys are fresh. Ring keys are sealed between clients: zeros under random keys. An address is that of
             a socket of this machine.
requests     Which randomness the group asks for is a function of N, Q, k and the number of clients: the simulator has
             a group compute on no scores at all. No assumption is needed: the requests are the same, one by one.
shares       Those of the answers are sealed for the asker: zeros.

A process per client makes a session slow to begin, so one session has many batches, and each of them is a view.
"""

from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.ideal.masked_sum import SimulatedSums, sealed_zeros
from protocols.ideal.scores import served, simulate_asking
from protocols.ideal.views import SeenFrame, View, canonical
from protocols.primitives.keys import AgreementKey
from protocols.primitives.prg import KEY_BYTES
from protocols.scores.crypten import binding, rendezvous
from protocols.scores.crypten.dealt import Kind
from protocols.scores.crypten.launcher import BatchJob, client_part, run, server_part
from protocols.scores.crypten.messages import (
    DIGEST_BYTES,
    WORD_BYTES,
    AnswerShares,
    GroupAnswer,
    GroupFormed,
    JoinGroup,
)
from protocols.scores.interface import no_scores
from protocols.scores.messages import PURPOSE
from protocols.scores.terms import ScoreTerms
from protocols.transport.base import Transport
from protocols.transport.processes import Part
from protocols.transport.tap import Recorder
from protocols.transport.traffic import Direction

Requests: TypeAlias = list[list[int]]
"""What one group asks its dealer for, in order (`protocols.scores.crypten.dealt.request`)."""


@dataclass(frozen=True)
class SeenByServer:
    """A real job as its server and its dealer see it."""

    view: View = field(repr=False)
    requests: list[Requests] = field(repr=False)
    """Of each batch."""


def client_parts(job: BatchJob) -> dict[PartyId, Part]:
    """What clients do: the first one also tells what it asks the dealer for."""
    return {min(job.parties): partial(telling_client, job)}


def seen_by_server(job: BatchJob, seconds: float) -> SeenByServer:
    """A real job, with a process per party. All batches have the same first client."""
    first = min(job.parties)
    ended = run(job, seconds, {SERVER: partial(_recorded, job), **client_parts(job)})
    problems = [one.problem for one in ended.values() if one.problem]
    if problems:
        raise RuntimeError(f"parties failed: {problems}")
    frames = [
        SeenFrame(direction, PartyId(peer), RoundId(number), phase, bytes.fromhex(frame))
        for direction, peer, number, phase, frame in ended[SERVER].value
    ]
    return SeenByServer(canonical(job.session, frames), _by_group(ended[first].value))


def simulated_requests(terms: ScoreTerms, seconds: float) -> Requests:
    """From the sizes of a batch alone: what a group asks for that computes on no scores."""
    scores = {party: no_scores(terms) for party in terms.clients}
    return seen_by_server(BatchJob((terms,), (scores,)), seconds).requests[0]


def simulate_crypten_scores(sums: SimulatedSums, terms: ScoreTerms, query_bytes: int) -> None:
    """One batch, without the requests to the dealer. All clients take part, and holders are not counted."""
    simulate_asking(sums, terms, query_bytes)
    parties, dealt = sorted(terms.clients), AgreementKey().public
    joining = {party: _joining(party, terms) for party in parties}
    for party, message in joining.items():
        sums.received(party, message, terms.round, binding.JOIN)
    names, first = [int(party) for party in parties], joining[parties[0]]
    for party in parties:
        given = {int(peer): joining[peer].sealed[int(party)] for peer in parties if peer != party}
        formed = GroupFormed(PURPOSE, names, dealt, given, first.host, first.port)
        sums.sent(party, formed, terms.round, binding.JOIN)
    words = terms.queries * min(terms.top, terms.positions)
    shares = {int(scorer): sealed_zeros(DIGEST_BYTES + words * WORD_BYTES) for scorer in sorted(terms.scorers)}
    for scorer, sealed in shares.items():
        sums.received(PartyId(scorer), AnswerShares(PURPOSE, sealed), terms.round, binding.SHARES)
    sums.sent(terms.asker, GroupAnswer(PURPOSE, names, shares), terms.round, binding.SHARES)
    served(sums, terms)


def _joining(party: PartyId, terms: ScoreTerms) -> JoinGroup:
    with closing(rendezvous.listen()) as listener:
        host, port = listener.getsockname()
    sealed = {int(peer): sealed_zeros(DIGEST_BYTES + KEY_BYTES) for peer in terms.clients if peer != party}
    return JoinGroup(PURPOSE, AgreementKey().public, sealed, host, port)


class _JsonRecorder(Recorder):
    """Keeps frames in a form in which a process can hand them over."""

    def __init__(self) -> None:
        self.frames: list[list[Any]] = []

    def write(self, direction: Direction, peer: PartyId, round_id: RoundId, phase: str, frame: Any) -> None:
        self.frames.append([direction, int(peer), int(round_id), phase, bytes(frame).hex()])

    def close(self) -> None:
        """Nothing to release."""


def _recorded(job: BatchJob, transport: Transport) -> list[list[Any]]:
    """The server's part: all frames at its end."""
    recorder = _JsonRecorder()
    transport.attach(recorder)
    server_part(job, transport)
    return recorder.frames


def telling_client(job: BatchJob, transport: Transport) -> Requests:
    """The part of the first rank, which alone asks the dealer: all of its requests."""
    from protocols.scores.crypten import group  # imports torch, which the server's process must not load

    asked: Requests = []
    make = vars(group)["request"]

    def noting(*arguments: Any) -> list[int]:
        asked.append(make(*arguments))
        return asked[-1]

    setattr(group, "request", noting)  # noqa: B010  the process ends with this job
    client_part(job, transport)
    return asked


def _by_group(asked: Requests) -> list[Requests]:
    """Every group ends with a word to the dealer."""
    groups: list[Requests] = [[]]
    for one in asked:
        groups[-1].append(one)
        if one[0] == Kind.END:
            groups.append([])
    return groups[:-1]

"""A client's belongings in one session of a run: plan, conversation, keys, learner, commitments, measurements."""

from dataclasses import dataclass, field
from pathlib import Path

from protocols.foundation.deadline import Deadline
from protocols.foundation.digests import digest
from protocols.foundation.errors import UnexpectedMessage
from protocols.foundation.identifiers import PartyId
from protocols.holders.interface import HolderClient
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Conversation
from protocols.sums.interface import Contribution, ContributionReport, MayOpen, SumClient, SumLayout
from protocols.sums.secagg.keys import ClientKeys
from protocols.sums.terms import SumTerms
from protocols.sums.totals import TotalReader
from secure_kg.federation.client.own_rows import OwnRows
from secure_kg.federation.client.states import States
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.learning.learner import Learner
from secure_kg.privacy.release_record import ReleaseRecord
from secure_kg.runs.stopwatch import Stopwatch


@dataclass(slots=True)
class Losses:
    """Losses of fixed-point encoding in this client's rows so far."""

    clipped: int = 0
    max_error: float = 0.0

    def note(self, report: ContributionReport) -> None:
        self.clipped += report.clipped
        self.max_error = max(self.max_error, report.max_error)


@dataclass(slots=True)
class ClientContext:
    """What all parts of a client need. One object is one session."""

    plan: RunPlan
    conversation: Conversation
    learner: Learner
    folder: Path
    """The client's own."""
    states: States
    keys: ClientKeys | None
    """With the other clients; None where the settings need none."""
    holders: HolderClient
    sums: dict[str, SumClient]
    """By the name of the aggregation."""
    watch: Stopwatch = field(default_factory=Stopwatch)
    losses: Losses = field(default_factory=Losses)
    shared: list[OwnRows] = field(default_factory=list)
    """The shared blocks as this client has applied them, in the plan's order."""
    releases: ReleaseRecord | None = None
    """Of a private run: what this client has released so far."""

    @property
    def party(self) -> PartyId:
        return self.conversation.transport.party

    def deadline(self) -> Deadline:
        """Of the next step."""
        return Deadline.after(self.plan.client_seconds)

    def step(self) -> ClientSession:
        """The session for the next step of a protocol."""
        return ClientSession(self.conversation, self.deadline())

    def contribute(
        self,
        aggregation: str,
        terms: SumTerms[SumLayout],
        contribution: Contribution,
        may_open: MayOpen | None = None,
    ) -> ContributionReport:
        """Contribute to a sum that is prepared."""
        report = self.sums[aggregation].contribute(self.step(), terms, contribution, may_open)
        self.watch.add("encode", report.encoding)
        self.watch.add("mask", report.masking)
        return report

    def prepare(self, aggregation: str, terms: SumTerms[SumLayout]) -> None:
        """Agree on whatever a sum needs."""
        self.sums[aggregation].prepare(self.step(), terms)

    def reader(self, aggregation: str) -> TotalReader | None:
        """Opens totals that only clients can read; None where the server reads them."""
        sums = self.sums[aggregation]
        return sums if isinstance(sums, TotalReader) else None

    def require_keys(self) -> ClientKeys:
        if self.keys is None:
            raise UnexpectedMessage("the server asks for what needs keys between clients, and there are none")
        return self.keys

    @property
    def model(self) -> bytes:
        """Digest of all shared blocks as this client has applied them; it enters the keys of the next sums."""
        digests = [rows.digest for rows in self.shared]
        return digest(*digests) if len(digests) > 1 else b"".join(digests)

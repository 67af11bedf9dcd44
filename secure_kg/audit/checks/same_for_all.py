"""Check of broadcasts: greetings, unions, rows, totals and verdicts are the same for all clients.

A server that gives one client a model of its own learns from that client's answer alone. Fields that name a client are
in none of these messages.
"""

from collections import Counter

from protocols.alignment.plain import ClearUnion
from protocols.alignment.psu.attempts import UnionPlaces
from protocols.registry import AGGREGATIONS
from protocols.sums.totals import SumTotal
from protocols.transport.tap import frame_hash
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.blocks import purpose_of
from secure_kg.federation.plan.messages import (
    Evaluate,
    LentTable,
    PackedRows,
    SharedBlock,
    SharedRows,
    TrainRound,
    Verdict,
    Welcome,
)
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted

_BODY = 32
"""Bytes of a frame's header, which names the round in which something was sent again."""
_NOTHING = frame_hash(b"")


class SameForAll(Check):
    id = "one-global-model"
    question = "Did clients get different versions of what is meant for all?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._session = self._sent = 0
        self._sums: Counter[str] = Counter()
        self._first: dict[tuple[int, str], tuple[str, int]] = {}
        self._has: dict[tuple[int, str], str] = {}
        """By client and purpose of a block's sums: the rows it was sent last."""
        self._blocks = RunPlan(config, clients).blocks
        self._read = {block.purpose for block in self._blocks if not AGGREGATIONS[block.aggregation].sealed}
        """Purposes of the blocks whose sums the server reads."""
        self._different, self._greetings = Evidence(), Evidence()

    def begin_session(self) -> None:
        self._session += 1
        self._sums, self._has = Counter(), {}

    def opened(self, total: OpenedSum) -> None:
        self._sums[total.purpose] += total.finished and not total.abandoned

    def observe(self, observation: Observation) -> None:
        if observation.direction != "sent":
            return
        party, number, digest = observation.peer, observation.round, frame_hash(observation.frame[_BODY:])
        match observation.message:
            case Welcome():
                self._compare("the greeting", party, digest, self._greetings)
            case SharedRows() | SharedBlock() | PackedRows() as sent:
                self._compare_rows(purpose_of(sent), party, digest)
            case SumTotal(purpose=purpose, of_round=of_round):
                self._compare(f"sum of {purpose} of round {of_round}", party, digest)
                self._has[party, purpose] = digest
            case LentTable():  # encrypted, so the same table looks different for everybody
                self._has = {
                    held: rows for held, rows in self._has.items() if held[0] != party or held[1] in self._read
                }
            case UnionPlaces(purpose=purpose):
                self._compare(f"places of {purpose}", party, digest)
            case ClearUnion():
                self._compare("the union", party, digest)
            case Verdict():
                self._compare(f"verdict on round {number}", party, digest)
            # By what a client has when it begins: which of two versions is the newer one is the server's word.
            case TrainRound() | Evaluate():
                for purpose in (block.purpose for block in self._blocks):
                    if (party, purpose) in self._has or purpose in self._read:
                        held = self._has.get((party, purpose), _NOTHING)
                        self._compare(f"{purpose} before {observation.kind} of round {number}", party, held)

    def _compare_rows(self, purpose: str, party: int, digest: str) -> None:
        self._compare(f"{purpose} after {self._sums[purpose]} sums of session {self._session}", party, digest)
        self._has[party, purpose] = digest

    def _compare(self, what: str, party: int, digest: str, different: Evidence | None = None) -> None:
        self._sent += 1
        first, other = self._first.setdefault((self._session, what), (digest, party))
        if first != digest:
            evidence = different if different is not None else self._different
            evidence.add(f"{what}: client {other} got {_short(first)}, client {party} got {_short(digest)}")

    def findings(self) -> list[Finding]:
        found = []
        if self._different:
            found.append(
                Finding(
                    "different-global-models",
                    "high",
                    "Clients were sent different versions of what is meant for all",
                    self._different.told(),
                    "A client that trains from rows made for it alone tells the server more about its own data than "
                    "the mean of many would. (In our protocols such clients cannot add up; the sum is lost, not the "
                    "secret.)",
                )
            )
        if self._greetings:
            found.append(
                Finding(
                    "different-greetings",
                    "high",
                    "Clients of one session were greeted differently",
                    self._greetings.told(),
                    "Clients were told of different sessions, settings, checkpoints or alignments. One that is sent "
                    "back to an earlier round than the others gives contributions of another state than theirs.",
                )
            )
        return found

    @property
    def seen(self) -> int:
        return self._sent

    def looked_at(self) -> str:
        return (
            f"{counted(self._sent, 'message')}, {counted(len(self._first), 'version')} expected to be the same for all"
        )


def _short(digest: str) -> str:
    return "nothing" if digest == _NOTHING else digest[:12]

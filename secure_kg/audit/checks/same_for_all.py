"""Check of broadcasts: greetings, unions, rows, totals and verdicts are the same for all clients.

A server that gives one client a model of its own learns from that client's answer alone. Fields that name a client are
in none of these messages.
"""

from protocols.alignment.plain import ClearUnion
from protocols.alignment.psu.attempts import UnionPlaces
from protocols.sums.totals import SumTotal
from protocols.transport.tap import frame_hash
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.messages import Evaluate, LentTable, SharedRows, TrainRound, Verdict, Welcome
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
        self._session = self._sent = self._sums = 0
        self._first: dict[tuple[int, str], tuple[str, int]] = {}
        self._has: dict[int, str] = {}
        """By client: the rows it was sent last."""
        self._different, self._greetings = Evidence(), Evidence()

    def begin_session(self) -> None:
        self._session += 1
        self._sums, self._has = 0, {}

    def opened(self, total: OpenedSum) -> None:
        self._sums += total.purpose == "rows" and total.finished and not total.given_up

    def observe(self, observation: Observation) -> None:
        if observation.direction != "sent":
            return
        party, number, digest = observation.peer, observation.round, frame_hash(observation.frame[_BODY:])
        match observation.message:
            case Welcome():
                self._compare("the greeting", party, digest, self._greetings)
            case SharedRows():
                self._compare(f"rows after {self._sums} sums of session {self._session}", party, digest)
                self._has[party] = digest
            case SumTotal(purpose=purpose, of_round=of_round):
                self._compare(f"sum of {purpose} of round {of_round}", party, digest)
                if purpose == "rows":
                    self._has[party] = digest
            case LentTable():  # encrypted, so the same table looks different for everybody
                self._has.pop(party, None)
            case UnionPlaces(purpose=purpose):
                self._compare(f"places of {purpose}", party, digest)
            case ClearUnion():
                self._compare("the union", party, digest)
            case Verdict():
                self._compare(f"verdict on round {number}", party, digest)
            # By what a client has when it begins: which of two versions is the newer one is the server's word.
            case TrainRound() | Evaluate() if party in self._has or not self.config.sum_protocol.sealed:
                self._compare(
                    f"rows before {observation.kind} of round {number}", party, self._has.get(party, _NOTHING)
                )

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

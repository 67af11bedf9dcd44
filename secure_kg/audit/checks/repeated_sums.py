"""A sum of one round and purpose is opened over one set of clients only, in whatever session.

A resumed job repeats the rounds after its checkpoint, with the same inputs. Over other clients than before, the
difference of the two sums is the input of those missing.
"""

from secure_kg.audit.checks.base import Check
from secure_kg.audit.findings import Evidence, Finding
from secure_kg.audit.opening import UNION, OpenedSum
from secure_kg.federation.config import RunConfig


class RepeatedSums(Check):
    id = "sums-repeated"
    question = "Was a sum opened twice, over different clients?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._session = self._sums = self._repeated = 0
        self._opened: dict[tuple[int, str], tuple[int, frozenset[int]]] = {}
        self._wrong = Evidence()

    def begin_session(self) -> None:
        self._session += 1

    def opened(self, total: OpenedSum) -> None:
        # Sums in clear hide nothing that a difference could show. Tables of a union have fresh tags and weights.
        if total.vector is None or not total.threshold or total.purpose.startswith(UNION):
            return
        self._sums += 1
        name = total.round, total.purpose
        if name not in self._opened:
            self._opened[name] = self._session, total.contributors
            return
        self._repeated += 1
        session, before = self._opened[name]
        if odd := before ^ total.contributors:
            named = ", ".join(str(party) for party in sorted(odd))
            self._wrong.add(
                f"round {total.round}, {total.purpose}: opened in session {session} and in session {self._session}, "
                f"once with and once without clients {named}"
            )

    def findings(self) -> list[Finding]:
        if not self._wrong:
            return []
        return [
            Finding(
                "same-sum-over-other-clients",
                "high",
                "A sum was opened twice, over different clients",
                self._wrong.told(),
                "The inputs of a round that is done again are the same as before. The difference of the two sums is "
                "the input of the clients that are in one of them only. Clients refuse to open such a sum.",
            )
        ]

    @property
    def seen(self) -> int:
        return self._sums

    def looked_at(self) -> str:
        return f"{self._sums:,} sums that were opened, {self._repeated:,} of them not for the first time"

"""Check of side channels: what sizes and times of messages tell."""

import statistics

from protocols.sums.plain import ClearInput
from protocols.sums.secagg.messages import MaskedInput
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.messages import TrainRound
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted, in_rounds

_NOTABLE = 1.5
_WARM_UP = 2
"""Nobody trains in the first round, and in the second one inner loops are compiled."""


class Sizes(Check):
    id = "message-sizes"
    question = "Does the size of a message depend on what a client holds?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._sizes: dict[tuple[int, str, str], dict[int, int]] = {}

    def observe(self, observation: Observation) -> None:
        if observation.direction == "received":
            key = observation.round, observation.kind, observation.purpose
            self._sizes.setdefault(key, {})[observation.peer] = observation.size

    def findings(self) -> list[Finding]:
        data, rest = Evidence(), Evidence()
        for (number, kind, purpose), sizes in sorted(self._sizes.items()):
            if len(set(sizes.values())) < 2:
                continue
            told = ", ".join(f"client {party} {size:,}" for party, size in sorted(sizes.items()))
            line = f"{in_rounds(number, number)}, {f'{kind} {purpose}'.rstrip()}: {told} bytes"
            (data if kind in ("MaskedInput", "ClearNames") else rest).add(line)
        found = []
        if data:
            found.append(
                Finding(
                    "sizes-tell-holdings",
                    "high",
                    "Messages of different clients have different sizes, which depend on their data",
                    data.told(),
                    "The server reads from the size how many names or rows a client has. Uploads under our protocols "
                    "have the size of the union for everybody.",
                )
            )
        if rest:
            found.append(
                Finding(
                    "sizes-differ",
                    "info",
                    "Some messages of the protocol differ in size between clients",
                    rest.told()[:6],
                    "They carry lists of clients (who shares masks with whom, who dropped out), which the server "
                    "knows, and numbers whose encoding takes more bytes the larger they are.",
                )
            )
        return found

    @property
    def seen(self) -> int:
        return len(self._sizes)

    def looked_at(self) -> str:
        messages = sum(map(len, self._sizes.values()))
        return f"{counted(messages, 'message')} of clients in {counted(len(self._sizes), 'group')}"


class Times(Check):
    id = "response-times"
    question = "Do response times tell clients apart?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._asked: dict[tuple[int, int], int] = {}
        self._seconds: dict[int, list[float]] = {}

    def observe(self, observation: Observation) -> None:
        key = observation.peer, observation.round
        match observation.message:
            case TrainRound() if observation.round > _WARM_UP:
                self._asked[key] = observation.time_ns
            case MaskedInput() | ClearInput() if (asked := self._asked.pop(key, None)) is not None:
                self._seconds.setdefault(observation.peer, []).append((observation.time_ns - asked) / 1e9)

    def findings(self) -> list[Finding]:
        medians = {party: statistics.median(times) for party, times in sorted(self._seconds.items()) if len(times) > 1}
        if len(medians) < 2:
            return []
        slowest, quickest = max(medians.values()), min(medians.values())
        told = ", ".join(f"client {party} {median:.3f} s" for party, median in medians.items())
        ratio = slowest / max(quickest, 1e-9)
        return [
            Finding(
                "response-times",
                "low" if ratio > _NOTABLE else "info",
                f"The slowest client takes {ratio:.1f} times as long as the quickest",
                (f"median seconds from the start of a round to the upload: {told}",),
                "How long a client trains depends on how many triples it has and on its machine. The server can see "
                "it, whatever is encrypted. Clients who mind can wait until a fixed time before they answer.",
            )
        ]

    @property
    def seen(self) -> int:
        return len(self._seconds)

    def looked_at(self) -> str:
        return f"{counted(sum(map(len, self._seconds.values())), 'answer')} of {counted(len(self._seconds), 'client')}"

"""Whether the server's own program, over the messages that were recorded, says what the server said.

See `secure_kg.audit.replay`. What is left to a server that passes is time: whom it has waited for how long.
"""

from collections.abc import Sequence

from secure_kg.audit.replay.again import SessionAgain
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Finding
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted


class AsProgrammed(Check):
    id = "as-programmed"
    question = "Did the server say or leave out anything that its program would not have?"

    def __init__(self, config: RunConfig, clients: int, again: Sequence[SessionAgain]) -> None:
        """`again`: of each session, up to the first in which the program went another way."""
        super().__init__(config, clients)
        self._again = again
        self._sessions = self._messages = 0

    def begin_session(self) -> None:
        self._sessions += 1

    def observe(self, observation: Observation) -> None:
        self._messages += 1

    def ignored(self, observation: Observation) -> None:
        self._messages += 1

    def findings(self) -> list[Finding]:
        different = [
            f"session {number}, {one.difference}" for number, one in enumerate(self._again, start=1) if one.difference
        ]
        if not different:
            return []
        later = self._sessions - len(self._again)
        if later > 0:
            different.append(f"{counted(later, 'later session')} not gone through")
        return [
            Finding(
                "not-as-programmed",
                "high",
                "The server did not do what its program does",
                tuple(different),
                "The auditor has run the server's program over the messages that the record has as received. Clients "
                "that were waited for in vain, or could not be reached, are dropouts to it. Up to this place it sends "
                "what the server sent. What stands here it never sends, whoever drops out when, or it does not go on "
                "without a message that is missing. Other findings may say what the server has gained by it.",
            )
        ]

    @property
    def seen(self) -> int:
        return sum(one.explained for one in self._again)

    def looked_at(self) -> str:
        if not self._again:
            return "nothing: the run was recorded by an earlier version, whose program is not here"
        return f"{self.seen:,} of {counted(self._messages, 'message')} sent or taken by the program as recorded"

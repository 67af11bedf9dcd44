"""Base class of all checks."""

from abc import ABC, abstractmethod
from typing import ClassVar

from secure_kg.audit.view.findings import CheckResult, Finding
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.settings import RunConfig


class Check(ABC):
    """One question about a run. Messages and opened sums come in the order of the transcript, and are not kept."""

    id: ClassVar[str]
    question: ClassVar[str]
    """What a passed check answers with "no"."""

    def __init__(self, config: RunConfig, clients: int) -> None:
        self.config, self.clients = config, clients

    def begin_session(self) -> None:  # noqa: B027  a check may look at one of these only
        """Another session of the run begins: all keys are new."""

    def observe(self, observation: Observation) -> None:  # noqa: B027  a check may look at one of these only
        """One message that an honest server says, or goes by."""

    def ignored(self, observation: Observation) -> None:  # noqa: B027  a check may look at one of these only
        """One message that an honest server does not say, or drops: a client may have sent anything."""

    def unasked(self, observation: Observation) -> None:  # noqa: B027  a check may look at one of these only
        """One key that was advertised ahead of a sum that did not come."""

    def opened(self, total: OpenedSum) -> None:  # noqa: B027  a check may look at one of these only
        """One sum, as the server held it."""

    @abstractmethod
    def findings(self) -> list[Finding]: ...

    @property
    @abstractmethod
    def seen(self) -> int:
        """How many things it could look at: a check that has seen nothing has not passed."""

    @abstractmethod
    def looked_at(self) -> str:
        """The same in words."""

    def unanswered(self) -> CheckResult:
        """Of a check that has failed."""
        return CheckResult(self.id, self.question, 0, "nothing: the check failed on this record", ())

    def result(self) -> CheckResult:
        return CheckResult(self.id, self.question, self.seen, self.looked_at(), tuple(self.findings()))

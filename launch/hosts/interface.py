"""The interface of a host. Importing it, or a host, must stay cheap: `enter` comes before everything else."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from launch.hosts.job import Job


class Host(ABC):
    """Carries the parties of a job, as processes, machines or threads."""

    options: ClassVar[Mapping[str, str]] = {}
    """The host's own options: name, as in `server_address` for `--server-address`, and help text. Values are text."""

    def enter(self) -> bool:
        """The first step in every process of a job; it may fork. Whether this process speaks to the user."""
        return True

    @abstractmethod
    def run(self, job: "Job") -> int:
        """Carry the job, or this process's part of it, to its end. Returns the exit code of the process.

        0: the job is done. 2: one line on standard error says what to mend; a `UserError` raised here becomes both.
        """

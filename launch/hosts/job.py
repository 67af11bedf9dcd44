"""A job as a host gets it: what the command line asks for, and how to start the same command again."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.console import say
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command

if TYPE_CHECKING:
    from secure_kg.federation.server.serve import Show

DEFAULT_RANKS: Final = 6
RUNS: Final = Path("runs")


@dataclass(frozen=True, slots=True)
class Plan:
    """What the command line asks for."""

    config: RunConfig
    out: Path | None
    """None: the server names a new folder under `RUNS`."""
    resume: bool
    ranks: int | None
    """As asked for; `parties` is the number to start."""
    host_options: Mapping[str, str] = field(default_factory=dict)
    """What was said of the host's own options, by name."""
    json: str | None = None
    """Where the summary goes as well; `-`: to standard output, and nothing else."""

    @property
    def parties(self) -> int:
        """How many parties to start, the server included: as asked for, as the resumed run has, or as usual."""
        if self.ranks is not None:
            return self.ranks
        return DEFAULT_RANKS if self.config.clients is None else self.config.clients + 1


@dataclass(frozen=True, slots=True)
class Job:
    """A plan, and the command that made it."""

    plan: Plan
    typed: str
    """The command line as the user types it."""
    restart: tuple[str, ...]
    """What follows `python -m` to start the same job again: a module and its arguments."""
    show: "Show"
    """Tells the user the result of the run; for the process of the server."""
    report: Callable[[str], None] = say
    """Tells the user how the run goes on; for the process of the server, and for the one that starts it."""


def for_clients(plan: Plan, clients: int) -> Plan:
    """The plan for so many clients; a resumed run must have as many as it had."""
    saved = plan.config.clients
    if saved not in (None, clients):
        raise UserError(f"--resume {plan.out}: the run has {saved} clients, so it needs {saved + 1} ranks")
    return dataclasses.replace(plan, config=dataclasses.replace(plan.config, clients=clients))


def require_divided(plan: Plan) -> None:
    """Refuse data of one client: there is no federation of one."""
    if plan.config.by == "whole":
        raise UserError(f"--by whole is one client alone, not a federation: use {command('launch.entire')}")


def new_run_path(config: RunConfig) -> Path:
    """A folder whose name sorts by time. Only the server calls this: clients are told the name."""
    what = f"{config.strategy}-{config.aggregation}-{config.model.lower()}"
    return RUNS / f"{datetime.now():%Y%m%d-%H%M%S}-{what}"

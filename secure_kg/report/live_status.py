"""Status of one party of a run at one moment: what its page shows, and nothing that the party does not know itself."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from secure_kg.federation.plan.disclosed import Disclosed


class Stage(Enum):
    """How far a party has come."""

    WAITING = "waiting for the others"
    SETUP = "setting up"
    RUNNING = "running"
    DONE = "finished"
    FAILED = "ended by an error"

    @property
    def over(self) -> bool:
        return self in (Stage.DONE, Stage.FAILED)


@dataclass(frozen=True, slots=True)
class Who:
    """A party of the run: number 0 is the server. `name`: of the site, if it has one."""

    number: int
    name: str = ""

    @property
    def serves(self) -> bool:
        return self.number == 0

    @property
    def title(self) -> str:
        if self.serves:
            return "Server"
        return f"{self.name} as client {self.number}" if self.name else f"Client {self.number}"

    @property
    def label(self) -> str:
        """In a table of parties."""
        party = "server" if self.serves else f"client {self.number}"
        return f"{self.name} ({party})" if self.name else party


@dataclass(frozen=True, slots=True)
class Peer:
    """Another party as this one sees it. Bytes up go to the server, bytes down come from it."""

    who: Who
    present: bool
    note: str = ""
    """Since when it is missing, for instance."""
    up: int = 0
    down: int = 0


@dataclass(frozen=True, slots=True)
class LiveStatus:
    """One moment of one party."""

    who: Who
    stage: Stage = Stage.WAITING
    done: int = 0
    """Rounds that are over."""
    rounds: int | None = None
    """The most there can be; early stopping may end a run before."""
    phase: str = ""
    elapsed: float = 0.0
    """Seconds since this process began its part."""
    left: float | None = None
    """Seconds to go, about; None: nobody knows."""
    peers: tuple[Peer, ...] = ()
    up: int = 0
    down: int = 0
    seconds: tuple[tuple[str, float], ...] = ()
    """By phase of this party's work."""
    metric: str = ""
    evaluations: tuple[tuple[int, float], ...] = ()
    """Rounds, and the validation metric at their end, as far as this party reads it."""
    sealed: bool = False
    """Whether clients alone read results."""
    disclosed: Disclosed | None = None
    log: tuple[str, ...] = ()
    problem: str = ""
    """Why it failed, in one line."""
    pages: tuple[str, ...] = field(default=())
    """Names of the finished pages that can be looked at."""

    @property
    def share(self) -> float:
        """Of the rounds that are over; a run that has stopped early is complete."""
        if self.stage is Stage.DONE:
            return 1.0
        return min(self.done / self.rounds, 1.0) if self.rounds else 0.0

    def to_json(self) -> dict[str, Any]:
        """For programs: the figures of the page, without the disclosures."""
        return {
            "party": self.who.number,
            "name": self.who.name,
            "stage": self.stage.name.lower(),
            "rounds_done": self.done,
            "rounds": self.rounds,
            "phase": self.phase,
            "seconds_elapsed": round(self.elapsed, 1),
            "seconds_left": None if self.left is None else round(self.left, 1),
            "bytes_up": self.up,
            "bytes_down": self.down,
            "peers": [{"party": peer.who.number, "present": peer.present} for peer in self.peers],
            "seconds": {name: round(value, 3) for name, value in self.seconds},
            "pages": list(self.pages),
        }

"""The host between organisations, at a member: one session after the other until the run is over.

A member decides by itself from where it goes on: from its own files. What the server says only chooses among its
checkpoints, and which sums it then helps to open its own record decides. So a server that ends sessions again and again
gets no sum that it could not have had in one of them.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

from launch.hosts.network import RUN_OVER
from launch.status.board import StatusBoard
from protocols.foundation.errors import Aborted, DeadlineExpired, PeerLost, Regrouped
from protocols.foundation.identifiers import SERVER
from protocols.transport.base import Transport
from secure_kg.federation.client.member_site import MemberSite
from secure_kg.federation.client.site import Followed
from secure_kg.federation.client.take_part import Participation, take_part
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.report.live_status import Stage

_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 30.0
_SECONDS_BETWEEN_LINES: Final = 30.0
_LASTING: Final = 30.0
"""Seconds after which a session was no failed beginning."""


class Progress:
    """How far this member is: a line now and then, and the page."""

    def __init__(self, rounds: int, report: Callable[[str], None], board: StatusBoard) -> None:
        self._rounds, self._report, self._board = rounds, report, board
        self._work: Followed | None = None
        self._over = threading.Event()

    def follow(self, work: Followed) -> None:
        """A session has begun."""
        self._work = work
        self._board.work(work)

    def __enter__(self) -> Self:
        threading.Thread(target=self._tell, name="progress", daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()

    def _tell(self) -> None:
        told = -1
        while not self._over.wait(_SECONDS_BETWEEN_LINES):
            done = told if self._work is None else self._work.rounds_done
            if done != told:
                told = done
                self._report(f"round {done:4d}/{self._rounds}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """A member's part. `link` makes a transport: one incarnation of this member."""

    config: RunConfig
    site: MemberSite
    link: Callable[[], Transport]
    report: Callable[[str], None]
    board: StatusBoard
    has_results: Callable[[], bool]
    """Whether this member has written the results of the run that it was at last."""
    pause: Callable[[float], None] = time.sleep


def join_run(joining: Joining) -> Participation:
    """All sessions of a run. Raises what ends this member's part, with one line for its console."""
    seconds, ended = 0.0, list[Participation]()
    while True:
        began = time.monotonic()
        if _session(joining, ended):
            return ended[-1] if ended else Participation.SOME_MISSING
        joining.board.note(stage=Stage.WAITING)
        if ended:
            continue  # the server's last words are due
        lasting = time.monotonic() - began > _LASTING
        seconds = _FIRST_PAUSE if lasting or not seconds else min(2 * seconds, _LONGEST_PAUSE)
        joining.pause(seconds)


def _session(joining: Joining, ended: list[Participation]) -> bool:
    """One session; whether the run is over. `ended`: how sessions that came to their end did."""
    config, clients, report = joining.config, joining.config.clients or 0, joining.report
    try:
        with joining.link() as transport:
            joining.board.watch(transport, linked=lambda: [SERVER] if getattr(transport, "linked", True) else [])
            joining.board.note(stage=Stage.RUNNING)
            participation = take_part(config, transport, clients, joining.site)
            if participation is Participation.EXCLUDED:
                report("the others have begun without this site; waiting to be taken in")
            else:
                ended.append(participation)
    except Regrouped as problem:
        report(f"a new session: {problem}")
    except Aborted as problem:
        if str(problem) == RUN_OVER and joining.has_results():
            return True
        raise UserError(f"the server has ended the job: {problem}") from None
    except PeerLost as problem:
        if SERVER not in problem.parties:
            raise
        report(f"{problem}; going on as soon as it is there")
    except DeadlineExpired as problem:
        if ended:
            return True  # nobody says that the run must be ended once more
        report(f"{problem}; trying again")
    return False

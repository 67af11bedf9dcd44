"""The host between organisations, at the server: members connect by themselves, and a run outlives their processes.

A run is carried by sessions. One ends before its time when a member whose process was started again waits for the next
(`secure_kg.federation.server.regrouping`), and the next one goes on from the last checkpoint. A server that was started
again does the same.

The members' end is `launch.hosts.network_member`. Both know a transport by its interface only.
"""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from launch.status.board import StatusBoard
from protocols.foundation.deadline import Deadline
from protocols.foundation.identifiers import NO_SESSION, SETUP, PartyId
from protocols.session.conversation import Conversation
from protocols.transport.base import Transport
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server.pacing import turns_of_environment
from secure_kg.federation.server.regrouping import WITHIN, Budget, Regrouping, RegroupNeeded
from secure_kg.federation.server.serve import Served, Show, serve_by
from secure_kg.federation.server.server import FederationServer
from secure_kg.foundation.words import seconds_text
from secure_kg.report.live_status import Stage
from secure_kg.runs.checkpoint import last_complete
from secure_kg.runs.run_folder import RunFolder

RUN_OVER: Final = "this run is over, and all of it is written"
"""The server's last words, to a member that comes after the goodbye."""
USUAL_WAIT: Final = 600.0
_FLUSH_SECONDS: Final = 30.0
_LAST_WORDS_SECONDS: Final = 3.0
_SECONDS_TO_HEAR_THE_END: Final = 10.0
_LOOK_SECONDS: Final = 5.0
_SECONDS_BETWEEN_LINES: Final = 60.0


class Members(Protocol):
    """The server's end of all links (`protocols.transport.https.server.HttpsServer`)."""

    def linked(self) -> frozenset[PartyId]: ...

    def waiting(self) -> frozenset[PartyId]: ...

    def wait_for(self, parties: Collection[PartyId], deadline: Deadline) -> frozenset[PartyId]: ...

    def transport(self) -> Transport: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A run that is served. `config`: with the number of members."""

    config: RunConfig
    path: Path
    """The run's folder, which has nothing of members."""
    report: Callable[[str], None]
    show: Show
    board: StatusBoard
    names: Mapping[int, str] = field(default_factory=dict)
    """Of the sites."""
    revoked: frozenset[PartyId] = frozenset()
    wait: float = USUAL_WAIT
    """Seconds to wait for all members before a session begins without some."""
    come_again: float = 30.0
    """The same for members that have just been there."""
    without_nobody: bool = False
    """Of a run again under one seed: sites refuse its sums over others than before, so that a session without one of
    them would train in vain."""


def serve_run(serving: Serving, members: Members) -> Served:
    """All sessions of a run, up to its end."""
    config = serving.config
    budget = Budget(max(WITHIN, config.checkpoint_every))
    everybody = frozenset(RunPlan(config, config.clients or 0).clients) - serving.revoked
    expected, seconds = everybody, serving.wait
    while True:
        here = _gathered(serving, members, expected, seconds)
        with members.transport() as transport:
            absent = dict.fromkeys(everybody - here, "not connected") | dict.fromkeys(serving.revoked, "revoked")
            try:
                served = _session(serving, members, transport, absent, budget)
                transport.flush(Deadline.after(_FLUSH_SECONDS))
                here |= members.linked()
                break
            except RegroupNeeded as problem:
                serving.report(str(problem))
                expected, seconds = (here | members.waiting() | transport.newcomers) & everybody, serving.come_again
                expected = everybody if serving.without_nobody else expected
                transport.flush(Deadline.after(_LAST_WORDS_SECONDS))
    serving.board.done(serving.path)
    tell_the_end(members, here)
    return served


def _session(
    serving: Serving, members: Members, transport: Transport, absent: dict[PartyId, str], budget: Budget
) -> Served:
    config, board = serving.config, serving.board

    def newcomers() -> frozenset[PartyId]:
        """Also those that came for the first time after the session had begun."""
        late = (members.linked() & absent.keys()) - serving.revoked
        return transport.newcomers | late

    may_checkpoint = config.checkpoint_every > 0
    regrouping = Regrouping(
        newcomers, absent, budget, may_checkpoint=may_checkpoint, lasting=True, come_again=serving.come_again
    )

    def make(folder: RunFolder) -> FederationServer:
        done = last_complete(folder.path).round
        board.watch(transport, folder.path, linked=lambda: [int(party) for party in members.linked()], done=done)
        return FederationServer(config, transport, folder, serving.report, turns_of_environment(), regrouping)

    board.note(stage=Stage.RUNNING, present=[int(party) for party in transport.peers if party not in absent])
    resume = (serving.path / "config.toml").exists()
    return serve_by(make, config, serving.path, resume=resume, show=serving.show)


def _gathered(serving: Serving, members: Members, expected: frozenset[PartyId], seconds: float) -> frozenset[PartyId]:
    """Who is there as soon as all that are expected are, or when time is up and enough of them are."""
    plan = RunPlan(serving.config, serving.config.clients or 0)
    deadline, said_at, said = Deadline.after(seconds), -_SECONDS_BETWEEN_LINES, frozenset[PartyId]()
    serving.board.note(stage=Stage.WAITING, present=[int(party) for party in members.waiting()])
    while True:
        here = members.wait_for(expected, Deadline.after(min(_LOOK_SECONDS, max(deadline.remaining(), 0.2))))
        serving.board.note(present=[int(party) for party in here])
        if expected <= here:
            return here
        enough = len(here) >= plan.least_present and not serving.without_nobody
        if deadline.expired and enough:
            missing = _named(serving, expected - here)
            serving.report(f"beginning without {missing}: not connected after {seconds_text(seconds)}")
            return here
        if here != said or time.monotonic() - said_at > _SECONDS_BETWEEN_LINES:
            said, said_at = here, time.monotonic()
            serving.report(_waiting_line(serving, here, expected, deadline))


def _waiting_line(serving: Serving, here: frozenset[PartyId], expected: frozenset[PartyId], deadline: Deadline) -> str:
    plan = RunPlan(serving.config, serving.config.clients or 0)
    there = f" ({_named(serving, here)})" if here else ""
    if serving.without_nobody:
        left = "for all: without one of them the sums of a run again under this seed would be refused"
    elif len(here) >= plan.least_present:
        left = f"for {seconds_text(deadline.remaining())} at most"
    else:
        left = f"for all; at least {plan.least_present} are needed"
    return f"{len(here)} of {len(expected)} members are here{there}; waiting {left}"


def _named(serving: Serving, parties: Collection[PartyId]) -> str:
    return ", ".join(f"{serving.names.get(party, 'client')} ({party})" for party in sorted(parties))


def tell_the_end(members: Members, expected: Collection[PartyId]) -> None:
    """Tell everybody that the run is over; it is written, so no member is needed any more.

    A member comes again after the goodbye to hear so. One that did not would be missing if this process had been ended
    after the goodbye, and the run had to be ended once more.
    """
    here = members.wait_for(expected, Deadline.after(_SECONDS_TO_HEAR_THE_END))
    if here:
        with members.transport() as transport:
            Conversation(transport, NO_SESSION).abort(here, RUN_OVER, SETUP)
            transport.flush(Deadline.after(_LAST_WORDS_SECONDS))

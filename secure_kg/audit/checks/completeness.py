"""Is the conversation whole? Every round, evaluation and result that the run had must stand in the record."""

from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.session.conversation import Abandon, Back, LeaveOut
from protocols.sums.plain import ClearInput
from protocols.sums.secagg.messages import MaskedInput
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.messages import Goodbye, TrainRound, Welcome
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted
from secure_kg.runs.records.summary import Summary


class Completeness(Check):
    id = "whole-conversation"
    question = "Does the record lack rounds, evaluations or results, or have messages of strangers?"

    def __init__(self, config: RunConfig, clients: int, summary: Summary | None, explained: bool = False) -> None:
        """`summary`: of a run that came to its end. `explained`: whether the server's program explains all sessions."""
        super().__init__(config, clients)
        self._summary, self._explained = summary, explained
        self._plan = RunPlan(config, clients)
        self._rows = [block.purpose for block in self._plan.blocks]
        self._trained: set[int] = set()
        self._uploads: set[tuple[int, str]] = set()
        self._strangers = Evidence()
        self._farewell = False
        self._digest = b""
        self._round = 0
        self._since: dict[int, int] = {}
        """By client that is left out: since which round."""
        self._away = {
            (number, one.client)
            for one in (summary.dropouts if summary is not None else ())
            for number in range(one.round, (config.rounds if one.returned is None else one.returned) + 1)
        }
        """Rounds that went on without a client, by the record and by what the run says of itself."""

    def begin_session(self) -> None:
        self._farewell = False
        self._return(*self._since)
        self._round = 0

    def ignored(self, observation: Observation) -> None:
        self._look_for_stranger(observation)

    def _look_for_stranger(self, observation: Observation) -> None:
        if not 1 <= observation.peer <= self.clients:
            self._strangers.add(f"{observation.kind} {observation.direction}, party {observation.peer}")

    def observe(self, observation: Observation) -> None:
        self._look_for_stranger(observation)
        if observation.direction == "sent":  # a client may name any round, and a server, too
            self._round = max(self._round, min(observation.round, self.config.rounds + 1))
        match observation.message:
            case Welcome(digest=digest):
                self._digest = digest
            case LeaveOut():
                self._since.setdefault(observation.peer, observation.round)
            case Back():
                self._return(observation.peer)
            case TrainRound():
                self._trained.add(observation.round)
            case MaskedInput(purpose=purpose) | ClearInput(purpose=purpose) | Abandon(purpose=purpose):
                self._uploads.add((observation.round, purpose))
                if isinstance(observation.message, Abandon) and purpose == HOLDERS:  # so ends the sum of rows
                    self._uploads.update((observation.round, rows) for rows in self._rows)
            case Goodbye():
                self._farewell = True

    @property
    def seen(self) -> int:
        return len(self._trained)

    def _return(self, *clients: int) -> None:
        for client in clients:
            since = self._since.pop(client, self._round + 1)
            self._away.update((number, client) for number in range(since, self._round + 1))

    def _nobody_there(self, number: int) -> bool:
        """Whether all clients that were drawn for a round were left out: there is nothing that could be recorded."""
        return all((number, party) in self._away for party in self._plan.participants(number))

    def _missing(self) -> Evidence:
        """By what the run says of itself; of a run without an end, by the rounds that come after."""
        self._return(*self._since)
        missing, complete = Evidence(), self._summary is not None
        trained = [number for number in self._trained if number <= self.config.rounds]
        last = self._summary.rounds if self._summary is not None else max(trained, default=0)
        # Why a round before the last has nothing in it the program knows: all who were drawn for it were dropouts.
        known = max(trained, default=0) if self._explained else 0
        for number in range(known + 1, last + 1):
            if self._nobody_there(number):
                continue
            if number not in self._trained:
                missing.add(f"round {number} is not there")
            elif any((number, rows) not in self._uploads for rows in self._rows) and (complete or number < last):
                missing.add(f"round {number}: nobody contributed rows")
        every = self.config.eval_every  # not the last round of a run that ended early or was resumed for more
        due = [number for number in range(1, last + 1) if number % every == 0 and self._plan.tells_test_results]
        for number in due[:-1] if not complete else due:
            if number > known and (number, "valid") not in self._uploads:
                missing.add(f"round {number}: no validation results")
        if complete and self._plan.tells_test_results and not any(purpose == "test" for _, purpose in self._uploads):
            missing.add("no test results")
        if complete and not self._farewell:
            missing.add("no goodbye at the end")
        return missing

    def findings(self) -> list[Finding]:
        found, missing = [], self._missing()
        if missing:
            found.append(
                Finding(
                    "record-incomplete",
                    "high",
                    "The record lacks parts of the run",
                    missing.told(),
                    "The run had these steps, by its own summary or by what comes after them. What the server saw in "
                    "them is not known, so a clean report says nothing about it.",
                )
            )
        if not self._trained:
            found.append(
                Finding(
                    "nothing-recorded",
                    # A job may end in its set-up, and one client can bring that about.
                    "medium" if self._explained and self._digest and self._summary is None else "high",
                    "The record holds no round at all",
                    (),
                    "There is nothing here by which the server could be judged.",
                )
            )
        if self._strangers:
            found.append(
                Finding(
                    "strange-party",
                    "high",
                    "Messages of parties that the run does not have",
                    self._strangers.told(),
                    f"The run has clients 1 to {self.clients}.",
                )
            )
        if self._digest and self._digest != self.config.digest():
            found.append(
                Finding(
                    "settings-differ",
                    "high",
                    "The settings in config.toml are not those that the parties agreed on",
                    ("the fingerprint in the last greeting is another one",),
                    "All parties compare a fingerprint of their settings when they begin. This file has others, so "
                    "what it declares is not what the run did.",
                )
            )
        return found

    def looked_at(self) -> str:
        return f"{counted(len(self._trained), 'round')}, {counted(len(self._uploads), 'kind')} of uploads"

"""A sum of one round and purpose is opened over one set of clients only, and from one set of states, in any session.

A resumed job repeats the rounds after its checkpoint, with the same inputs. Over other clients than before, the
difference of the two sums is the input of those missing; from other states, it is what has changed in them. Inputs are
the same, too, if their states are, whatever the sum is called.
"""

import dataclasses

from protocols.sums.secagg.messages import SignedSurvivors, Survivors
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.run_plan import UNION
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted, named_clients


class RepeatedSums(Check):
    id = "sums-repeated"
    question = "Was a sum opened twice, over different clients or from different states?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._session = self._sums = self._repeated = 0
        self._opened: dict[tuple[int, str], tuple[int, OpenedSum]] = {}
        """By round and purpose: in which session first, and what it was, without its vector."""
        self._states: dict[bytes, tuple[str, frozenset[int]]] = {}
        """By state: in which sum first, and over whom."""
        self._unopened: list[tuple[int, OpenedSum]] = []
        """Sums that clients were asked to open, and that the record does not open: in which session, and what."""
        self._unread: dict[int, frozenset[int]] = {}
        """By session: clients that have sent more than the record has."""
        self._untold: dict[int, frozenset[int]] = {}
        """By session: clients that have received more than the record has."""
        self._events = 0
        self._heard: dict[tuple[int, int], int] = {}
        """By session and client: the last event that came from it."""
        self._asked_at: dict[tuple[int, int, str, int], int] = {}
        """By session, round, purpose and client: the event in which it was asked to open a sum."""
        self._wrong, self._changed, self._likely = Evidence(), Evidence(), Evidence()

    def begin_session(self) -> None:
        self._session += 1

    def observe(self, observation: Observation) -> None:
        self._events += 1
        if observation.direction == "received":
            self._heard[self._session, observation.peer] = self._events
        elif isinstance(observation.message, Survivors | SignedSurvivors):
            self._asked_at[self._session, observation.round, observation.purpose, observation.peer] = self._events

    def ignored(self, observation: Observation) -> None:
        self.observe(observation)

    def opened(self, total: OpenedSum) -> None:
        if total.asked and total.vector is None:
            self._unopened.append((self._session, total))
        # Sums in clear hide nothing that a difference could show.
        if total.vector is None or not total.threshold:
            return
        self._sums += 1
        name = total.round, total.purpose
        if name in self._opened:
            self._repeated += 1
            self._compare(*self._opened[name], total)
        else:
            self._opened[name] = self._session, dataclasses.replace(total, vector=None, seeds={}, mask_keys={})
            if not total.purpose.startswith(UNION):
                self._compare_states(total)

    def _compare(self, session: int, before: OpenedSum, total: OpenedSum) -> None:
        """With the sum of the same round and purpose that was opened first."""
        where = f"round {total.round}, {total.purpose}: opened in session {session} and in session {self._session}"
        if odd := before.contributors ^ total.contributors:
            self._wrong.add(f"{where}, once with and once without {named_clients(odd)}")
        # Of a union only the size can be compared: its table has fresh tags and weights each time.
        fresh = total.purpose.startswith(UNION)
        both = frozenset() if fresh else before.contributors & total.contributors
        if changed := {party for party in both if before.states.get(party) != total.states.get(party)}:
            self._changed.add(f"{where}, with inputs of {named_clients(changed)} that depend on something else")

    def _compare_states(self, total: OpenedSum) -> None:
        """With sums of other names that hold the same inputs."""
        where = f"session {self._session}, round {total.round}, {total.purpose}"
        for party, state in sorted(total.states.items()):
            if not state:
                continue
            first, contributors = self._states.setdefault(state, (where, total.contributors))
            if contributors != total.contributors:
                self._wrong.add(f"{where}: over other clients than {first}, with the same state of client {party}")

    def not_recorded(self, unread: frozenset[int], untold: frozenset[int]) -> None:
        """The session under way is over. Clients that have sent more than the record has, and received more."""
        self._unread[self._session], self._untold[self._session] = unread, untold

    def _silent_after(self, session: int, total: OpenedSum) -> frozenset[int]:
        """Clients of which the record has nothing after they were asked to open a sum: what it lacks may be that."""
        where = session, total.round, total.purpose
        return frozenset(
            party
            for party in total.contributors
            if self._heard.get((session, party), -1) < self._asked_at.get((*where, party), self._events)
        )

    def _refusers(self, session: int, total: OpenedSum) -> frozenset[int]:
        """Clients that were asked for the same inputs over other clients before: what they send is a refusal."""
        earlier = [
            other.asked
            for first, other in [*self._opened.values(), *self._unopened]
            if first < session and _of_same_inputs(other, total) and other.contributors != total.contributors
        ]
        return frozenset[int]().union(*earlier)

    def _compare_unopened(self) -> None:
        """A sum is open to a server that has the answers, whether or not its record has them.

        What a client has sent after it was asked to help is its answer, or a refusal if it was asked before. Clients on
        the server's side may have answered elsewhere.
        """
        likely = list[tuple[int, OpenedSum, str]]()
        for session, total in self._unopened:
            asked = total.asked | (self._untold.get(session, frozenset()) & total.contributors)
            unread = self._unread.get(session, frozenset()) & self._silent_after(session, total)
            answers = asked & (total.answered | (unread - self._refusers(session, total)))
            if len(answers) >= total.threshold - self.config.corrupt_clients:
                likely.append((session, total, f"in session {session} {named_clients(answers)} had answered"))
        opened = [(session, total, f"opened in session {session}") for session, total in self._opened.values()]
        for index, (_, total, told) in enumerate(likely):
            for _, other, how in [*opened, *likely[:index]]:
                odd = other.contributors ^ total.contributors
                if odd and _of_same_inputs(other, total):
                    where = f"round {total.round}, {total.purpose}: {how}, and {told}"
                    self._likely.add(f"{where}, once with and once without {named_clients(odd)}")
        self._unopened = []

    def findings(self) -> list[Finding]:
        self._compare_unopened()
        found = []
        if self._wrong:
            found.append(
                Finding(
                    "same-sum-over-other-clients",
                    "high",
                    "A sum was opened twice, over different clients",
                    self._wrong.told(),
                    "The inputs of a round that is done again are the same as before. The difference of the two sums "
                    "is the input of the clients that are in one of them only. Clients that have helped to open the "
                    "first refuse to open the second. If others were enough for it, the server came to it by accident, "
                    "or by calling clients out of reach.",
                )
            )
        if self._likely:
            found.append(
                Finding(
                    "same-sum-answered-twice",
                    "medium",
                    "A sum was asked for twice, over different clients, and answered more than is recorded",
                    self._likely.told(),
                    "The record does not open one of these sums, but by the clients' receipts enough answers were on "
                    "their way, or would have been with those of clients on the server's side. A server that was "
                    "killed in this moment leaves the same record, and so does one that has read both sums.",
                )
            )
        if self._changed:
            found.append(
                Finding(
                    "same-sum-from-other-states",
                    "high",
                    "A sum was opened twice, from different states of the same clients",
                    self._changed.told(),
                    "A round that is done again gives the same sum, if clients begin it where they began before. Here "
                    "they began elsewhere, and the difference of the two sums is what that has changed: of one client, "
                    "if only one was sent elsewhere. Clients refuse to open such a sum.",
                )
            )
        return found

    @property
    def seen(self) -> int:
        return self._sums

    def looked_at(self) -> str:
        return f"{counted(self._sums, 'opened sum')}, {self._repeated:,} of them not for the first time"


def _of_same_inputs(one: OpenedSum, other: OpenedSum) -> bool:
    """Of one round and purpose, or with a state in common."""
    states, others = ({*filter(None, total.states.values())} for total in (one, other))
    return (one.round, one.purpose) == (other.round, other.purpose) or bool(states & others)

"""Which sums a client has helped to open, over whom and from which states: kept as long as inputs may come again.

Two sums that hold the same secret over different survivors can be subtracted from each other, and what is left belongs
to those who are in one of them only. So every client commits, before a sum, to the state that its input depends on (its
parameters, the part of its data, the kind of sum, whatever the sum is called). Everybody is told the commitments of
all, and a client helps to open

- the sum of one round and purpose of a run a second time only if the survivors, the states of all of them and what they
  have applied are as before: the sum is then the same number and shows nothing new. (A resumed job repeats the rounds
  after its last checkpoint.)
- a sum that holds a state which it has opened before, its own or anybody's, in this run or an earlier one of which it
  has the record, only over the same survivors and with the same states of all of them (of a purpose in which others may
  have moved on in between, over the same survivors);
- sums of a purpose that is meant to be opened at the end of a run, in whatever round, over one set of survivors.

A client guards the states of the others too, because a threshold of clients opens a sum, whether or not the one whose
secret comes twice is among them. If those who shared keys already rule a sum out, it gives no input either. A refusal
costs that sum and no other.

A commitment is an HMAC under a key that never leaves its client: to everybody else it shows whether two states of one
client are the same, and nothing else. Commitments are part of the keys under which clients encrypt shares for each
other (`terms`): a server that passes on a false one makes an end of the sum before any input is given.

In a sparse graph a client sees its neighbours only, and a new sum gives it new ones: there it opens no state twice.
"""

import hashlib
import hmac
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import PartyId, RoundId

_DOMAIN = b"secure-kg/state/1/"


@dataclass(frozen=True, slots=True)
class Opening:
    """One sum as a client is about to help to open it."""

    round: RoundId
    purpose: str
    survivors: frozenset[PartyId]
    states: Mapping[PartyId, bytes] = field(default_factory=dict)
    """The survivors' commitments. Empty ones guard nothing: such an input is fresh each time."""
    model: bytes = b""
    """Digest of what all of them have applied (`SumTerms.model`)."""
    run: str = ""
    """In which run, by the client's own count: rounds of different runs have nothing in common."""

    @property
    def name(self) -> tuple[int, str]:
        return int(self.round), self.purpose


Note: TypeAlias = Callable[[Opening], None]
"""Write down what is about to be opened; must not return before it is safe from the process's own death."""


def commit(key: bytes, kind: str, depends_on: bytes) -> bytes:
    """The commitment of a client that holds `key` to the state `depends_on` of its input to sums of one kind."""
    return hmac.new(key, _DOMAIN + kind.encode() + b"/" + depends_on, hashlib.sha256).digest()


class Openings:
    """`known`: what was opened before this session. `note`: where to write down what is opened now.

    `run`: the run under way. `at_the_end`: purposes whose sums are opened over one set of survivors in a run. `moving`:
    purposes in which a state may come again beside others that have changed.
    """

    def __init__(
        self,
        known: Collection[Opening] = (),
        note: Note | None = None,
        run: str = "",
        at_the_end: Collection[str] = (),
        moving: Collection[str] = (),
    ) -> None:
        self._run, self._at_the_end, self._moving = run, frozenset(at_the_end), frozenset(moving)
        self._by_name: dict[tuple[int, str], Opening] = {}
        self._by_state: dict[bytes, Opening] = {}
        self._last: dict[str, Opening] = {}
        for opening in known:
            self._remember(opening)
        self._note = note

    def __repr__(self) -> str:
        return f"Openings({len(self._by_name)} sums)"

    def may_come(self, opening: Opening) -> None:
        """`SumAbandoned` if no part of these `survivors`, of whom some may still drop out, can be opened."""
        for before in (*self._same_inputs(opening), *self._same_end(opening)):
            if not before.survivors <= opening.survivors:
                raise SumAbandoned(self._over_others(opening, before))

    def open(self, opening: Opening) -> None:
        """Called right before a client answers for the survivors; `SumAbandoned` if it must not."""
        same = self._same_inputs(opening)
        for before in (*same, *self._same_end(opening)):
            if before.survivors != opening.survivors:
                raise SumAbandoned(self._over_others(opening, before))
        named = self._by_name.get(opening.name)
        applied_otherwise = named is not None and named.model != opening.model
        bound = [named] if opening.purpose in self._moving else same
        if applied_otherwise or any(one is not None and dict(one.states) != dict(opening.states) for one in bound):
            raise SumAbandoned(
                f"the sum of {opening.purpose} of round {opening.round} has inputs that were opened before, beside "
                "other states or rows; the difference would be what has changed"
            )
        opening = replace(opening, run=self._run)
        self._remember(opening)
        if self._note is not None:
            self._note(opening)

    def _same_inputs(self, opening: Opening) -> list[Opening]:
        """What was opened of the same name, and of each of the same states."""
        named = self._by_name.get(opening.name)
        same = [self._by_state[state] for state in opening.states.values() if state in self._by_state]
        return [*([named] if named is not None else []), *same]

    def _same_end(self, opening: Opening) -> list[Opening]:
        last = self._last.get(opening.purpose)
        return [last] if last is not None else []

    def _remember(self, opening: Opening) -> None:
        """The first opening of each sum and of each state counts."""
        if opening.run == self._run:
            self._by_name.setdefault(opening.name, opening)
            if opening.purpose in self._at_the_end:
                self._last.setdefault(opening.purpose, opening)
        for state in opening.states.values():
            if state:
                self._by_state.setdefault(state, opening)

    def _over_others(self, opening: Opening, before: Opening) -> str:
        same = (before.run, before.name) == (self._run, opening.name)
        again = "was" if same else f"has inputs that were, as {before.purpose} of {before.round},"
        return (
            f"the sum of {opening.purpose} of round {opening.round} {again} opened before over other clients; the "
            "difference would be the input of those missing"
        )

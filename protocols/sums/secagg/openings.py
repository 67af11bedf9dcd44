"""Openings: the sums a client has helped to open, over whom and from which states, kept as long as inputs may repeat.

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
- sums of a purpose that is meant to be opened at the end of a run, in whatever round, over one set of survivors;
- a sum of a lineage which it has opened before, in this run or an earlier one, only over the same survivors. A lineage
  is the client's own word for inputs that are nearly the same whatever a server does: a state is new as soon as one bit
  of it is, and a server chooses some of the bits (a table that it sends, a learning rate that it proposes).

- a sum of one round and purpose of a run, or of its own state, a second time in a run only if it computes as it did
  then (`Opening.computed`): the last bits of its input are those of its processor, or its GPU, and of its libraries. On
  another machine the same round from the same state is another vector, and the difference of the two sums would be what
  that one client rounds otherwise. Nobody else can see it coming, so that client gives no input.

What a client knows it tells the others. Each says with its commitment over whom it has helped to open a sum of the same
inputs before, and nobody opens one over other survivors than anybody has named (`announced`). So it does not matter
whom a server asks. Let it have sums X1, X2, ... of the same inputs opened, over different sets of clients. At least
t - c honest clients have helped to open each, t the threshold and c the corrupt clients. Those that helped with Xj are
in Xj and in no later sum, since there they would have named Xj. Take any combination of these sums, and the first Xj in
it whose factor is not zero: the inputs of all who helped with Xj are in it with that one factor. So it holds the sum of
t - c honest inputs or more, which is two at least, as every single sum does. Where a client's own input has changed and
others' have not, it has nothing to announce beforehand. It then gives no input to a sum that holds a state which it has
opened, unless those who have agreed on keys are those of before (`may_come`). That is less than a proof: of inputs some
of which change and some do not (`moving`) a server that breaks the protocol can have sums opened by different clients
that add up to one input, where two sets of t clients need not share an honest one.

A client guards the states of the others too, because a threshold of clients opens a sum, whether or not the one whose
secret comes twice is among them. If those who shared keys already rule a sum out, it gives no input either. A refusal
costs that sum and no other.

A commitment is an HMAC under a key that never leaves its client: to everybody else it shows whether two states of one
client are the same, and nothing else. Commitments are part of the keys under which clients encrypt shares for each
other (`terms`): a server that passes on a false one makes an end of the sum before any input is given.

Who took part a record says by identity where clients have any: a number may have gone to another organisation since,
and the difference of two sums would be what the old one and the new one have added. Where there are none, and in
records of earlier versions, the same numbers are the same survivors.

In a sparse graph a client sees its neighbours only, and a new sum gives it new ones: there it opens no state twice.

The words of a refusal are read by auditors (`opened_before`): a client that refuses a sum because of an earlier opening
in the same run says which, and a record of the run that lacks that opening is not whole.
"""

import hashlib
import hmac
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from protocols.foundation.digests import digest, encode_parties
from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import SETUP, PartyId, RoundId

_DOMAIN = b"secure-kg/state/1/"
_ANNOUNCED: Final = b"secure-kg/opened over/1"
_BY_IDENTITY: Final = b"identities"
NOBODY: Final = digest(_ANNOUNCED)
"""An announcement that fits no sum."""
_OVER_OTHERS: Final = "opened before over other clients"
_BESIDE_OTHERS: Final = "opened before, beside other states or rows"
_ELSEWHERE: Final = "opened before, computed on another machine"
_ROUNDING: Final = "the difference would be what one client rounds otherwise"
_IN_ANOTHER_RUN: Final = " in another run"
_REFUSAL: Final = re.compile(
    r"the sum of (\S+) of round (\d+) (?:was|has inputs that were)(?:, as (\S+) of (\d+),)? "
    f"(?:{_OVER_OTHERS}|{_BESIDE_OTHERS}|{_ELSEWHERE});"
)


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
    lineage: str = ""
    """What its inputs nearly depend on, by the client's own settings; empty if they are new in every run."""
    told: Mapping[PartyId, bytes] = field(default_factory=dict)
    """What clients of this sum have announced (`announcement`)."""
    computed: str = ""
    """On what the client has computed its own input, in its own words; empty if nobody says. It tells nobody."""
    identities: Mapping[PartyId, str] = field(default_factory=dict)
    """Fingerprints of the survivors' identities, of all or of none: without them survivors are numbers."""

    @property
    def name(self) -> tuple[int, str]:
        return int(self.round), self.purpose

    def over_same(self, other: "Opening") -> bool:
        """Whether the survivors of both are the same: the same organisations, where both know who they are."""
        return self.within(other) and len(self.survivors) == len(other.survivors)

    def within(self, other: "Opening") -> bool:
        """Whether all survivors of this one are among those of the `other`."""
        if self.identities and other.identities:
            return frozenset(self.identities.values()) <= frozenset(other.identities.values())
        return self.survivors <= other.survivors


Note: TypeAlias = Callable[[Opening], None]
"""Write down what is about to be opened; must not return before it is safe from the process's own death."""
LineageOf: TypeAlias = Callable[[RoundId, str], str]
"""The lineage of the sum of a round and purpose, as it is now."""


def commit(key: bytes, kind: str, depends_on: bytes) -> bytes:
    """The commitment of a client that holds `key` to the state `depends_on` of its input to sums of one kind."""
    return hmac.new(key, _DOMAIN + kind.encode() + b"/" + depends_on, hashlib.sha256).digest()


def announcement(
    survivors: Collection[PartyId],
    states: Mapping[PartyId, bytes] | None = None,
    model: bytes = b"",
    identities: Mapping[PartyId, str] | None = None,
) -> bytes:
    """What a client that has helped to open a sum over `survivors` tells those of the next sum of the same inputs.

    `states`: if these must be as before, too, and what was applied. `identities`: of the survivors, if they are known.
    """
    named = digest(_BY_IDENTITY, *(one.encode() for one in sorted(identities.values()))) if identities else b""
    who = named or encode_parties(survivors)
    if states is None:
        return digest(_ANNOUNCED, who)
    by_party = b"".join(digest(encode_parties([party]), state) for party, state in sorted(states.items()))
    return digest(_ANNOUNCED, who, by_party, model)


def opened_before(reason: str) -> tuple[int, str] | None:
    """Round and purpose of the opening in the same run for which a client has refused a sum; None for other reasons."""
    found = _REFUSAL.match(reason)
    if found is None:
        return None
    purpose, number, other_purpose, other_number = found.groups()
    return int(other_number or number), other_purpose or purpose


class Openings:
    """`known`: what was opened before this session. `note`: where to write down what is opened now.

    `run`: the run under way. `at_the_end`: purposes whose sums are opened over one set of survivors in a run. `moving`:
    purposes in which a state may come again beside others that have changed. `lineage_of`: None if no sum has one.
    """

    def __init__(
        self,
        known: Collection[Opening] = (),
        note: Note | None = None,
        run: str = "",
        at_the_end: Collection[str] = (),
        moving: Collection[str] = (),
        lineage_of: LineageOf | None = None,
    ) -> None:
        self.computed = ""
        """On what inputs are computed in this session; empty if nobody says."""
        self.identities: Mapping[PartyId, str] = {}
        """Fingerprints of all clients, by this client's own knowledge; none where it knows numbers alone."""
        self._run, self._at_the_end, self._moving = run, frozenset(at_the_end), frozenset(moving)
        self._lineage_of = lineage_of
        self._by_name: dict[tuple[int, str], Opening] = {}
        self._by_state: dict[bytes, Opening] = {}
        self._by_lineage: dict[str, Opening] = {}
        self._last: dict[str, Opening] = {}
        self._latest: Opening | None = None
        for opening in known:
            self._remember(opening)
        self._note = note

    def __repr__(self) -> str:
        return f"Openings({len(self._by_name)} sums)"

    def announced(self, round_id: RoundId, purpose: str, party: PartyId, state: bytes) -> bytes:
        """What this client announces before a sum to which it commits `state`; empty if it has opened nothing alike."""
        coming = self._mine(Opening(round_id, purpose, frozenset(), {party: state}))
        before = [*self._same_inputs(coming), *self._nearly_same_inputs(coming)]
        if not before:
            return b""
        first = before[0]
        if not all(first.over_same(one) for one in before):
            return NOBODY  # whatever it is opened over, one of them was over others
        named = self._by_name.get(coming.name)
        if named is not None:
            return announcement(named.survivors, named.states, named.model, named.identities)
        if purpose not in self._moving and self._same_inputs(coming):
            return announcement(first.survivors, first.states, identities=first.identities)
        return announcement(first.survivors, identities=first.identities)

    def may_come(self, opening: Opening, party: PartyId) -> None:
        """`SumAbandoned` if no part of these `survivors`, of whom some may still drop out, can be opened; or if one of
        them has the state of a sum over others, whoever of these may still drop out; or if client `party`, whose record
        this is, has computed its input elsewhere."""
        opening = self._mine(opening)
        self._require_same_machine(opening, party)
        for before in (*self._same_inputs(opening), *self._nearly_same_inputs(opening)):
            if not before.within(opening):
                raise SumAbandoned(self._over_others(opening, before))
        for state in opening.states.values():
            if state in self._by_state and not self._by_state[state].over_same(opening):
                raise SumAbandoned(self._over_others(opening, self._by_state[state]))

    def require_announced(self, opening: Opening) -> None:
        """`SumAbandoned` if any client has announced that it has helped to open another sum of the same inputs."""
        if not opening.told:
            return
        opening = self._mine(opening)
        survivors, states = opening.survivors, opening.states
        here = set[bytes]()
        for identities in ({}, opening.identities):  # a record of an earlier version has numbers alone
            here |= {
                announcement(survivors, identities=identities),
                announcement(survivors, states, identities=identities),
                announcement(survivors, states, opening.model, identities),
            }
        if odd := [party for party, announced in sorted(opening.told.items()) if announced not in here]:
            raise SumAbandoned(
                f"the sum of {opening.purpose} of round {opening.round} has inputs that client {odd[0]} has helped to "
                "open otherwise; the difference would be the input of those missing, or what has changed"
            )

    def open(self, opening: Opening) -> None:
        """Called right before a client answers for the survivors; `SumAbandoned` if it must not."""
        opening = self._mine(opening)
        same = self._same_inputs(opening)
        for before in (*same, *self._nearly_same_inputs(opening)):
            if not before.over_same(opening):
                raise SumAbandoned(self._over_others(opening, before))
        named = self._by_name.get(opening.name)
        if named is not None and named.model != opening.model:
            raise SumAbandoned(self._beside_others(opening, named))
        bound = [one for one in same if one is named] if opening.purpose in self._moving else same
        for before in bound:
            if dict(before.states) != dict(opening.states):
                raise SumAbandoned(self._beside_others(opening, before))
        self.require_announced(opening)  # what it knows by itself comes first: auditors read the words of that
        self._remember(opening)
        if self._note is not None:
            self._note(opening)

    def _mine(self, opening: Opening) -> Opening:
        """As this client knows it."""
        lineage = self._lineage_of(opening.round, opening.purpose) if self._lineage_of is not None else ""
        known = self.identities if opening.survivors <= self.identities.keys() else {}
        identities = {party: known[party] for party in sorted(opening.survivors)} if known else {}
        return replace(opening, run=self._run, lineage=lineage, identities=identities, computed=self.computed)

    def _require_same_machine(self, opening: Opening, party: PartyId) -> None:
        """Before it gives input: others may open the sum without it. They may have done so, too, in the round after the
        last one of which it knows."""
        if opening.round == SETUP or not opening.computed:  # names are not computed
            return

        def elsewhere(before: Opening) -> bool:
            return before.run == self._run and before.computed not in ("", opening.computed)

        for before in (self._by_name.get(opening.name), self._by_state.get(opening.states.get(party, b""))):
            if before is not None and elsewhere(before):
                raise SumAbandoned(self._refusal(opening, before, _ELSEWHERE, _ROUNDING))
        latest = self._latest
        if latest is not None and elsewhere(latest) and opening.round <= latest.round + 1:
            it = f"the sum of {opening.purpose} of round {opening.round}"
            raise SumAbandoned(f"{it} may have been {_ELSEWHERE}; {_ROUNDING}")

    def _same_inputs(self, opening: Opening) -> list[Opening]:
        """What was opened of the same name, and of each of the same states."""
        named = self._by_name.get(opening.name)
        same = [self._by_state[state] for state in opening.states.values() if state in self._by_state]
        return [*([named] if named is not None else []), *same]

    def _nearly_same_inputs(self, opening: Opening) -> list[Opening]:
        """What was opened at the end of the run, and of the same lineage."""
        found = (self._last.get(opening.purpose), self._by_lineage.get(opening.lineage))
        return [before for before in found if before is not None]

    def _remember(self, opening: Opening) -> None:
        """The first opening of each sum, state and lineage counts."""
        if opening.run == self._run:
            self._by_name.setdefault(opening.name, opening)
            if self._latest is None or opening.round >= self._latest.round:
                self._latest = opening
            if opening.purpose in self._at_the_end:
                self._last.setdefault(opening.purpose, opening)
        if opening.lineage:
            self._by_lineage.setdefault(opening.lineage, opening)
        for state in opening.states.values():
            if state:
                self._by_state.setdefault(state, opening)

    def _over_others(self, opening: Opening, before: Opening) -> str:
        return self._refusal(opening, before, _OVER_OTHERS, "the difference would be the input of those missing")

    def _beside_others(self, opening: Opening, before: Opening) -> str:
        return self._refusal(opening, before, _BESIDE_OTHERS, "the difference would be what has changed")

    def _refusal(self, opening: Opening, before: Opening, how: str, why: str) -> str:
        """`opened_before` reads it."""
        it = f"the sum of {opening.purpose} of round {opening.round}"
        earlier = f"as {before.purpose} of {before.round},"
        if before.run != self._run:
            exactly = not {*filter(None, opening.states.values())}.isdisjoint(before.states.values())
            inputs = "inputs" if exactly else "nearly the inputs"
            why = f"{why}; another --seed gives other inputs"
            return f"{it} has {inputs} that were, {earlier} {how}{_IN_ANOTHER_RUN}; {why}"
        if before.name != opening.name:
            return f"{it} has inputs that were, {earlier} {how}; {why}"
        return f"{it} {'has inputs that were' if how == _BESIDE_OTHERS else 'was'} {how}; {why}"

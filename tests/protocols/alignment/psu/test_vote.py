"""The vote on a union: whatever a server sends, nobody shows by a complaint which names it holds."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from protocols.alignment.interface import Positions
from protocols.alignment.psu import union as union_module
from protocols.alignment.psu.attempts import Attempt, UnionPlaces
from protocols.alignment.psu.tags import tags_of
from protocols.alignment.psu.vote import PURPOSE, REFUSED, AlignmentRefused, accepts, ballot, vote_terms
from protocols.foundation import wire
from protocols.foundation.errors import Aborted, PeerFailed, PeerMisbehaved
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.ideal.views import ViewRecorder
from protocols.primitives.group import MODULUS, PrimeField
from protocols.primitives.prg import combine_keystreams
from protocols.session.conversation import Conversation, Failed
from protocols.sums.secagg.messages import MaskedInput, Survivors
from protocols.sums.secret.aggregation import mask_key
from protocols.sums.totals import SumTotal
from tests.support.in_threads import SESSION, Part, converse
from tests.support.sum_conversations import SECAGG, Foreseen, Stopped, bent, everyone
from tests.support.union_conversations import (
    KEY,
    OTHER_KEY,
    AnsweringOtherwise,
    Served,
    is_union_of,
    joining,
    of_purpose,
    serving,
    unite,
)

FIELD = PrimeField()
CLIENTS = everyone(4)
COMMON = [f"name {number}" for number in range(12)]
BOTH = PartyId(2)
"""Holds the two names that a server asks about; the others hold one of them or none."""
ASKED = ("left", "right")
SETS = {
    PartyId(1): [*COMMON, "left", "l"],
    BOTH: [*COMMON, *ASKED],
    PartyId(3): [*COMMON, "right", "r"],
    PartyId(4): [*COMMON, "o", "p"],
}
OTHERS = [*COMMON, *"lropq"]
NOBODY_HAS_BOTH = SETS | {BOTH: [*COMMON, "left", "q"]}


def on_one_position(answer: UnionPlaces) -> UnionPlaces:
    """Places that put two names on one position and move no name that all hold: a server that knows their tags."""
    attempt = Attempt.of(0, 100, SESSION, KEY.commitment)
    (left, right), layout = tags_of(ASKED, attempt.tag_key(KEY)), attempt.layout
    cells = layout.cells_of(*np.stack((left, right)).T)
    held = layout.cells_of(*np.ascontiguousarray(tags_of(OTHERS, attempt.tag_key(KEY)).T))
    free = next(cell for cell in cells[:, 1].tolist() if cell not in held and cell not in cells[:, 0])
    places = answer.places.astype(np.int64)
    sums = places[cells].sum(axis=0)
    places[free] = (places[free] + sums[0] - sums[1]) % answer.size
    return UnionPlaces(answer.purpose, answer.size, places.astype(np.uint32))


Mend = Callable[[Conversation], Conversation]
Answer = Callable[[UnionPlaces], UnionPlaces]


@dataclass
class Outcome:
    served: Served
    results: dict[PartyId, Any]
    sent: dict[PartyId, list[tuple[str, str, int]]]
    """By client, in order: phase, kind and bytes of all that it sent."""
    said: dict[PartyId, str]
    """Why a client said that it cannot go on."""


class Asking:
    """Clients against a server that gives them false places, the same to all, and may do more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def __call__(
        self,
        sets: dict[PartyId, list[str]],
        mend: Mend = lambda straight: straight,
        parts: dict[PartyId, Part] | None = None,
        answer: Answer = on_one_position,
        **options: Any,
    ) -> Outcome:
        real, recorders = union_module.answer_of, {party: ViewRecorder() for party in sets}

        def recorded(party: PartyId, part: Part) -> Part:
            def take_part(conversation: Conversation) -> Any:
                conversation.transport.attach(recorders[party])
                return part(conversation)

            return take_part

        honest = {party: joining(list(sets), names) for party, names in sets.items()}
        with self._monkeypatch.context() as patched:
            patched.setattr(union_module, "answer_of", lambda total, attempt: answer(real(total, attempt)))
            clients = {party: recorded(party, part) for party, part in (honest | (parts or {})).items()}
            results = converse({SERVER: serving(list(sets), mend=mend, **options)} | clients)
        sent, said = dict[PartyId, list[tuple[str, str, int]]](), dict[PartyId, str]()
        for party, recorder in recorders.items():
            view = recorder.view(SESSION)
            sent[party] = [(one[2], one[4], one[5]) for one in view.structure() if one[0] == "sent"]
            for seen in view.messages():
                if isinstance(seen.message, Failed):
                    said[party] = seen.message.reason
        return Outcome(results.pop(SERVER), results, sent, said)


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> Asking:
    return Asking(monkeypatch)


def everybody_refused(outcome: Outcome) -> bool:
    return outcome.said == dict.fromkeys(CLIENTS, REFUSED) and all(
        str(outcome.results[party]) == REFUSED for party in CLIENTS
    )


def everybody_goes_on(outcome: Outcome) -> bool:
    return not outcome.said and all(isinstance(found, Positions) for found in outcome.results.values())


# --- honest parties -------------------------------------------------------------------------------------------------


def test_an_honest_union_passes() -> None:
    served, positions = unite(list(SETS.values()))
    assert is_union_of(served, positions, SETS, CLIENTS)


@pytest.mark.parametrize("step", SECAGG.says)
def test_the_vote_is_of_those_who_are_left(step: str) -> None:
    def stop() -> Any:
        raise Stopped

    lost = PartyId(3)
    parts = {party: joining(CLIENTS, names) for party, names in SETS.items()}
    parts[lost] = bent(parts[lost], of_purpose(SECAGG.says[step], PURPOSE, stop))
    results = converse({SERVER: serving(CLIENTS, patience=Foreseen((f"{step}/{PURPOSE}", lost)))} | parts)
    served = results.pop(SERVER)
    assert results.pop(lost) is None
    assert served.silences.seen == [({lost}, f"{step}/{PURPOSE}")]
    assert is_union_of(served, results, SETS, CLIENTS)  # its names stay in the union


# --- a server that asks who holds two names ---------------------------------------------------------------------------


def test_two_names_on_one_position_stop_everybody_in_the_same_words(asking: Asking) -> None:
    outcome = asking(SETS)
    assert everybody_refused(outcome)
    objections = {party: problem.objection for party, problem in outcome.results.items()}
    assert objections == {party: "two names of this client have the same position" * (party == BOTH) for party in SETS}
    assert outcome.served.problem is None  # the server hears of it in its next step


def test_nothing_that_is_sent_depends_on_who_holds_both(asking: Asking) -> None:
    """Kinds, sizes and order are those of every other client, and the same whoever it is; the rest is under masks."""
    turned = dict(zip(SETS, [*list(SETS.values())[2:], *list(SETS.values())[:2]], strict=True))
    first, second = asking(SETS), asking(turned)
    assert [party for party, problem in second.results.items() if problem.objection] == [PartyId(4)]
    assert first.sent == second.sent
    assert all(frames == first.sent[BOTH] for frames in first.sent.values())
    assert [kind for phase, kind, _ in first.sent[BOTH] if phase.endswith(PURPOSE)] == [
        kind.__name__ for kind in SECAGG.says.values()
    ]


def test_a_collision_that_nobody_holds_is_no_reason(asking: Asking) -> None:
    assert everybody_goes_on(asking(NOBODY_HAS_BOTH))


def test_a_size_below_the_number_of_names_of_one(asking: Asking) -> None:
    size = 14
    sets = SETS | {BOTH: [*SETS[BOTH], "one more"]}
    outcome = asking(sets, answer=lambda told: UnionPlaces(told.purpose, size, told.places % np.uint32(size)))
    assert everybody_refused(outcome)
    assert outcome.results[BOTH].objection == "a union of 14 names, of which this client alone has 15"


# --- a server that changes the vote -----------------------------------------------------------------------------------


class Forging(Conversation):
    """A server's conversation in which a vote's total is what `bend` makes of it for each client."""

    def __init__(self, straight: Conversation, bend: Callable[[SumTotal, PartyId], SumTotal]) -> None:
        super().__init__(straight.transport, straight.session)
        self._bend = bend

    def broadcast(self, to: Collection[PartyId], message: wire.Message, round_id: RoundId) -> set[PartyId]:
        if not isinstance(message, SumTotal):
            return super().broadcast(to, message, round_id)
        return self.deliver({party: self._bend(message, party) for party in to}, round_id)


def moved(total: SumTotal, first: int, second: int, contributors: list[int] | None = None) -> SumTotal:
    vector = FIELD.add(total.vector, np.array([first, second], dtype=np.uint64))
    return SumTotal(total.purpose, total.of_round, contributors or total.contributors, vector)


FORGERIES: dict[str, Callable[[SumTotal, PartyId], SumTotal]] = {
    "the vote": lambda total, _: moved(total, 1, 0),
    "the check": lambda total, _: moved(total, 0, 1),
    "both": lambda total, _: moved(total, 1, 1),
    "zeros": lambda total, _: SumTotal(PURPOSE, 0, total.contributors, np.zeros(2, dtype=np.uint64)),
    "too short": lambda total, _: SumTotal(PURPOSE, 0, total.contributors, np.zeros(1, dtype=np.uint64)),
    "another round": lambda total, _: SumTotal(PURPOSE, 1, total.contributors, total.vector),
    "not in the field": lambda total, _: SumTotal(PURPOSE, 0, total.contributors, np.full(2, MODULUS, np.uint64)),
    "without the one who objects": lambda total, _: moved(total, 0, 0, [1, 3, 4]),
    "each alone": lambda total, party: moved(total, 0, 0, [int(party)]),
    "a stranger": lambda total, _: moved(total, 0, 0, [1, 2, 3, 4, 5]),
}


@pytest.mark.parametrize("sets", [SETS, NOBODY_HAS_BOTH], ids=["objected to", "accepted"])
@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_false_total_is_refused_by_everybody_alike(
    forgery: str, sets: dict[PartyId, list[str]], asking: Asking
) -> None:
    assert everybody_refused(asking(sets, lambda straight: Forging(straight, FORGERIES[forgery])))


@pytest.mark.parametrize("sets", [SETS, NOBODY_HAS_BOTH], ids=["objected to", "accepted"])
def test_a_false_total_for_one_stops_that_one(sets: dict[PartyId, list[str]], asking: Asking) -> None:
    """What it says does not depend on whether somebody objects, and what the others do not on what it was sent."""
    for told in (PartyId(1), BOTH):
        outcome = asking(
            sets, lambda straight, told=told: Forging(straight, lambda total, to: moved(total, int(to == told), 0))
        )
        assert outcome.said == dict.fromkeys([told] if sets is NOBODY_HAS_BOTH else CLIENTS, REFUSED)


class Dropping(Conversation):
    """A server's conversation that loses the vote of one client, and still sends it the total of the others."""

    def __init__(self, straight: Conversation, dropped: PartyId) -> None:
        super().__init__(straight.transport, straight.session)
        self._dropped = dropped

    def broadcast(self, to: Collection[PartyId], message: wire.Message, round_id: RoundId) -> set[PartyId]:
        if isinstance(message, SumTotal):
            self.send(self._dropped, Survivors(PURPOSE, []), round_id)  # as if its vote had been taken
            to = {*to, self._dropped}
        return super().broadcast(to, message, round_id)


class Lost(Conversation):
    """A client's conversation whose vote is lost on the way."""

    def send(self, to: PartyId, message: wire.Message, round_id: RoundId) -> None:
        if not (isinstance(message, MaskedInput) and message.purpose == PURPOSE):
            super().send(to, message, round_id)


@pytest.mark.parametrize("sets", [SETS, NOBODY_HAS_BOTH], ids=["objects", "does not"])
def test_a_client_that_is_dropped_says_the_same_whatever_its_vote(
    sets: dict[PartyId, list[str]], asking: Asking
) -> None:
    """The others go on without it."""
    part = joining(CLIENTS, sets[BOTH])
    outcome = asking(
        sets,
        lambda straight: Dropping(straight, BOTH),
        {BOTH: lambda straight: part(Lost(straight.transport, straight.session))},
        patience=Foreseen((f"masked input/{PURPOSE}", BOTH)),
    )
    assert outcome.said == {BOTH: REFUSED}
    assert str(outcome.results.pop(BOTH)) == REFUSED
    assert all(isinstance(positions, Positions) for positions in outcome.results.values())


def test_clients_that_were_sent_different_places_do_not_vote_together() -> None:
    """Their shares do not open for each other, whether or not one of them objects: nobody sends a vote."""

    def different(answer: UnionPlaces, party: PartyId) -> UnionPlaces:
        return on_one_position(answer) if party in (1, BOTH) else answer

    for sets in (SETS, NOBODY_HAS_BOTH):
        parts = {party: joining(CLIENTS, names) for party, names in sets.items()}
        server = serving(CLIENTS, mend=lambda straight: AnsweringOtherwise(straight, different))
        results = converse({SERVER: server} | parts)
        assert isinstance(results.pop(SERVER).problem, PeerFailed)
        assert all(isinstance(problem, PeerMisbehaved | Aborted) for problem in results.values())
        assert any("the shares of client" in str(problem) for problem in results.values())


# --- ballots ----------------------------------------------------------------------------------------------------------


def total_of(objecting: Collection[bool], contributors: list[int] | None = None) -> SumTotal:
    task = vote_terms(tuple(CLIENTS), b"places")
    vector = np.zeros(2, dtype=np.uint64)
    for party, objects in zip(CLIENTS, objecting, strict=False):
        FIELD.add_into(vector, ballot(objects, task, KEY))
        combine_keystreams(vector, FIELD, [mask_key(KEY, task, party)])
    return SumTotal(PURPOSE, 0, contributors or list(range(1, len(list(objecting)) + 1)), vector)


@pytest.mark.parametrize("objecting", [(False,) * 4, (True, False, False), (True, True, True, True), (False, True)])
def test_one_objection_is_enough(objecting: tuple[bool, ...]) -> None:
    task = vote_terms(tuple(CLIENTS), b"places")
    assert accepts(total_of(objecting), task, KEY) == (not any(objecting))


def test_a_vote_counts_for_its_places_and_its_key() -> None:
    total = total_of((False, False))
    assert accepts(total, vote_terms(tuple(CLIENTS), b"places"), KEY)
    assert not accepts(total, vote_terms(tuple(CLIENTS[:3]), b"places"), KEY)
    assert not accepts(total, vote_terms(tuple(CLIENTS), b"places"), OTHER_KEY)
    objected = total_of((True, False))
    assert not accepts(objected, vote_terms(tuple(CLIENTS), b"others"), KEY)


def test_ballots_of_an_objection_are_never_the_same() -> None:
    task = vote_terms(tuple(CLIENTS), b"places")
    assert len({ballot(True, task, KEY).tobytes() for _ in range(20)}) == 20
    assert not ballot(False, task, KEY).any()
    assert ballot(True, task, KEY).all()


def test_an_objection_is_in_no_text() -> None:
    problem = AlignmentRefused("two names of this client have the same position")
    assert str(problem) == REFUSED
    assert "two names" not in repr(problem)

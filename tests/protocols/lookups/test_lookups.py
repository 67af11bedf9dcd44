"""Lookups: what is found is what was given, of unknown origin; servers that change it are noticed, budgets keep."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved, SumAbandoned
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.lookups.messages import NamesTotal
from protocols.lookups.names import MOST_NAMES, names_terms
from protocols.lookups.vectors import VectorBudget, Vectors, VectorTerms
from protocols.scores.budget import BudgetSpent, MemoryRecord
from protocols.scores.messages import ScoresTotal
from protocols.session.conversation import Conversation
from secure_kg.audit.scores.audit import audit_scores
from secure_kg.audit.scores.session import open_session
from tests.support.lookups import REQUEST, NamesAsked, VectorsAsked, look_up
from tests.support.score_batches import BEARING, TRUSTING
from tests.support.sum_conversations import everyone

ASKER = PartyId(1)


def vector_terms(clients: int = 3, vectors: int = 3, width: int = 4, number: int = 0) -> VectorTerms:
    return VectorTerms(
        round=RoundId(1 + 3 * number),
        clients=tuple(everyone(clients)),
        asker=ASKER,
        vectors=vectors,
        width=width,
        table=b"table",
    )


def some_answers(terms: VectorTerms, known: dict[int, list[bool]], seed: int = 0) -> VectorsAsked:
    rng = np.random.default_rng(seed)
    answers = {}
    for party in terms.clients:
        mask = np.array(known.get(int(party), [False] * terms.vectors))
        answers[party] = Vectors(mask, rng.normal(0, 2, (int(mask.sum()), terms.width)))
    return VectorsAsked(terms, answers)


def names_asked(named: dict[int, dict[int, str]], positions: tuple[int, ...] = (7, 2, 9)) -> NamesAsked:
    terms = names_terms(RoundId(1), tuple(everyone(3)), ASKER, len(positions), b"union")
    return NamesAsked(terms, positions, {PartyId(party): of for party, of in named.items()})


class Changing(Conversation):
    """A server that changes a message of one kind on its way to the asker."""

    kind: type[wire.Message]

    def broadcast(self, to: Iterable[PartyId], message: Any, round_id: RoundId) -> set[PartyId]:  # type: ignore[override]
        if isinstance(message, self.kind):
            message.vector[0] += 1  # type: ignore[attr-defined]
        return super().broadcast(list(to), message, round_id)


def changing(kind: type[wire.Message]) -> Any:
    def wrap(straight: Conversation) -> Conversation:
        bent = Changing(straight.transport, straight.session)
        bent.kind = kind
        bent.__dict__.update({name: value for name, value in straight.__dict__.items() if name != "kind"})
        return bent

    return wrap


@settings(deadline=None, max_examples=8)
@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=3, max_size=5), st.integers(0, 9))
def test_vectors_are_the_means_over_those_that_have_them(known: list[list[bool]], seed: int) -> None:
    asked = some_answers(vector_terms(len(known)), {index + 1: one for index, one in enumerate(known)}, seed)
    (found,) = look_up([asked]).found
    assert found.counts.tolist() == np.array(known).sum(axis=0).tolist()
    for place in range(asked.terms.vectors):
        given_ = [one.values[one.known[:place].sum()] for one in asked.answers.values() if one.known[place]]
        mean = np.mean(given_, axis=0) if given_ else np.zeros(asked.terms.width)
        assert np.abs(found.means[place] - mean).max() < 1e-5


def test_everybody_else_sees_the_request_and_the_asker_whom_it_came_from_nobody() -> None:
    asked = some_answers(vector_terms(), {2: [True, True, False]})
    looked = look_up([asked])
    assert looked.seen == {1: [], 2: [REQUEST], 3: [REQUEST]}
    assert not hasattr(looked.found[0], "contributors")


@pytest.mark.parametrize("kind", [TRUSTING["semi-honest"], TRUSTING["signed"]], ids=["semi-honest", "signed"])
def test_names_come_from_whoever_names_them(kind: Any) -> None:
    named = {2: {7: "aspirin", 9: "Straße\n"}, 3: {7: "aspirin", 5: "not asked for"}}
    (found,) = look_up([names_asked(named)], kind).found
    assert found == ["aspirin", "", "Straße\n"]


def test_a_name_that_is_too_long_is_not_named() -> None:
    (found,) = look_up([names_asked({2: {7: "x" * 256, 2: "y" * 255}})]).found
    assert found == ["", "y" * 255, ""]


def test_holders_that_do_not_agree_end_the_lookup() -> None:
    looked = look_up([names_asked({2: {7: "one"}, 3: {7: "another"}})])
    assert isinstance(looked.problems[ASKER], PeerMisbehaved)
    assert "do not agree" in str(looked.problems[ASKER])


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        (some_answers(vector_terms(), {2: [True] * 3}), ScoresTotal),
        (names_asked({2: {7: "one"}}), NamesTotal),
    ],
    ids=["vectors", "names"],
)
def test_a_total_that_the_server_has_changed_is_noticed(asked: Any, kind: type[wire.Message]) -> None:
    looked = look_up([asked], wrap={SERVER: changing(kind)})
    assert looked.found == []
    assert isinstance(looked.problems[ASKER], PeerMisbehaved)


def test_a_batch_counts_its_vectors_whatever_its_size() -> None:
    records = {PartyId(party): MemoryRecord() for party in (2, 3)}
    budgets = {party: VectorBudget(record, 4, width=4) for party, record in records.items()}
    asked = [some_answers(vector_terms(vectors=m, number=at), {2: [True] * m}) for at, m in enumerate((3, 1, 1))]
    asked[2] = replace(asked[2], request=b"another request")
    looked = look_up(asked, budgets=budgets)
    assert len(looked.found) == 2
    assert isinstance(looked.problems[PartyId(2)], BudgetSpent)
    assert [charge.queries for charge in records[PartyId(2)].charges] == [3, 1]


def test_answers_of_another_shape_never_leave_a_client() -> None:
    wrong = Vectors(np.array([True, False, False]), np.zeros((1, 5)))
    asked = some_answers(vector_terms(), {})
    looked = look_up([VectorsAsked(asked.terms, {**asked.answers, PartyId(2): wrong})])
    assert looked.found == []
    assert isinstance(looked.problems[PartyId(2)], ValueError)


@pytest.mark.parametrize(
    "make",
    [
        lambda: vector_terms(vectors=0),
        lambda: vector_terms(vectors=2000, width=1000),
        lambda: names_terms(RoundId(1), tuple(everyone(3)), ASKER, 0, b""),
        lambda: names_terms(RoundId(1), tuple(everyone(3)), ASKER, MOST_NAMES + 1, b""),
    ],
)
def test_sizes_that_cannot_be_are_refused(make: Any) -> None:
    with pytest.raises(ValueError, match=r"vectors|positions|names"):
        make()


def test_positions_that_repeat_are_refused_by_the_asker_and_by_the_others() -> None:
    looked = look_up([names_asked({}, (4, 4))])
    assert isinstance(looked.problems[ASKER], ValueError)


@pytest.mark.parametrize("active", [False, True])
def test_a_recorded_session_of_lookups_is_run_again_and_stays_clean(tmp_path: Path, active: bool) -> None:
    asked = some_answers(vector_terms(5), {2: [True] * 3, 4: [True, False, False]})
    names = names_terms(RoundId(4), asked.terms.clients, ASKER, 2, b"union")
    kind = BEARING["signed" if active else "semi-honest"]
    again = replace(names, round=RoundId(7))
    to_do = [asked, *(NamesAsked(terms, (3, 5), {PartyId(3): {3: "three"}}) for terms in (names, again))]
    looked = look_up(to_do, kind, record=tmp_path / "run")
    assert looked.found[1:] == [["three", ""]] * 2
    session = open_session(tmp_path / "run")
    assert session is not None
    told = audit_scores(session)
    assert [finding.id for finding in told.findings if finding.severity == "high"] == []
    assert "nothing" not in {check.id: check.looked_at for check in told.checks}["as-programmed"]
    assert any("lookups" in one or "names" in one for one in told.record().may_learn)


@pytest.mark.parametrize("kind", [ScoresTotal, NamesTotal])
def test_an_audit_names_a_changed_total(tmp_path: Path, kind: type[wire.Message]) -> None:
    asked: Any = some_answers(vector_terms(), {2: [True] * 3}) if kind is ScoresTotal else names_asked({2: {7: "one"}})
    look_up([asked], wrap={SERVER: changing(kind)}, record=tmp_path / "run")
    session = open_session(tmp_path / "run")
    assert session is not None
    assert "false-score-totals" in {finding.id for finding in audit_scores(session).findings}


def test_a_lookup_over_other_clients_than_before_is_refused() -> None:
    """Of two means that differ by one client the asker would read that client's."""
    four = vector_terms(4)
    asked = some_answers(four, {2: [True] * 3, 3: [True] * 3, 4: [True] * 3})
    less = VectorTerms(round=RoundId(4), clients=tuple(everyone(3)), asker=ASKER, vectors=3, width=4, table=four.table)
    looked = look_up([asked, VectorsAsked(less, asked.answers)])
    assert len(looked.found) == 1
    assert isinstance(looked.problems[ASKER], SumAbandoned | PeerMisbehaved)

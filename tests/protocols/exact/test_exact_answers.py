"""Exact answers over threads: the plain twin, what servers and clients can do to them, budgets, and what passes."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.exact.budget import ExactBudget
from protocols.exact.circuit import in_clear
from protocols.exact.formula import ATOM, BOTH, EITHER, NEGATED, Formula
from protocols.exact.terms import MOST_ATOMS, exact_terms
from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved, SumAbandoned
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.scores.budget import BudgetSpent, MemoryRecord
from protocols.scores.messages import PURPOSE
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.dealing import Deal
from protocols.scores.topk.exchange import Exchange
from protocols.scores.topk.messages import SelectionRelay, SelectionStep
from protocols.sums.secagg.params import ParametersRefused
from protocols.sums.secagg.session import SecAggSession
from secure_kg.audit.scores.audit import audit_scores
from secure_kg.audit.scores.session import open_session
from tests.support.bent_scores import SilentAfter, about, bending, falling_silent, hearing, lying
from tests.support.lookups import REQUEST, ExactAsked, look_up
from tests.support.score_batches import TRUSTING
from tests.support.sum_conversations import everyone

ASKER, TWO, THREE = PartyId(1), PartyId(2), PartyId(3)
AND = Formula((ATOM, ATOM, BOTH))


def terms_of(clients: int, positions: int, atoms: int, number: int = 0, asker: int = 1) -> ScoreTerms:
    return exact_terms(RoundId(1 + 3 * number), tuple(everyone(clients)), PartyId(asker), positions, atoms, b"union")


def asked(formula: Formula, clients: int = 3, positions: int = 21, number: int = 0, **more: Any) -> ExactAsked:
    rng = np.random.default_rng(more.pop("seed", 0))
    terms = terms_of(clients, positions, formula.atoms, number, **more)
    sets = {party: rng.random((formula.atoms, positions)) < 0.3 for party in terms.clients}
    return ExactAsked(terms, formula, sets)


def expected(one: ExactAsked) -> list[int]:
    return np.flatnonzero(in_clear(one.formula, list(one.sets.values()))).tolist()


@st.composite
def formulas(draw: st.DrawFn) -> Formula:
    """Any tree of up to five atoms; unbounded ones are negated as a whole."""
    steps, height = [draw(st.sampled_from([ATOM, ATOM | NEGATED]))], 1
    for _ in range(draw(st.integers(0, 4))):
        steps.append(draw(st.sampled_from([ATOM, ATOM | NEGATED])))
        height += 1
        while height > 1 and draw(st.booleans()):
            steps.append(draw(st.sampled_from([BOTH, EITHER])) | draw(st.sampled_from([0, NEGATED])))
            height -= 1
    steps += [draw(st.sampled_from([BOTH, EITHER])) for _ in range(height - 1)]
    try:
        return Formula(tuple(steps))
    except ValueError:
        return Formula((*steps[:-1], steps[-1] ^ NEGATED))


@settings(max_examples=12)
@given(formulas(), st.integers(3, 5), st.integers(1, 40), st.integers(1, 3), st.integers(0, 99))
def test_the_answers_are_those_of_the_plain_twin(
    formula: Formula, clients: int, positions: int, asker: int, seed: int
) -> None:
    one = asked(formula, clients, positions, seed=seed, asker=asker)
    looked = look_up([one])
    assert not looked.problems
    assert looked.found[0].tolist() == expected(one)


def test_several_in_one_session_and_everybody_else_reads_the_request() -> None:
    both = [asked(AND, number=0), asked(Formula((ATOM, ATOM | NEGATED, BOTH)), number=1, seed=1)]
    looked = look_up(both)
    assert [found.tolist() for found in looked.found] == [expected(one) for one in both]
    assert looked.seen == {1: [], 2: [REQUEST] * 2, 3: [REQUEST] * 2}


def test_the_server_sees_the_same_sizes_whatever_the_formula_and_the_sets() -> None:
    seen = []
    for formula in (AND, Formula((ATOM, ATOM, EITHER)), Formula((ATOM, ATOM | NEGATED, BOTH))):
        for empty in (False, True):
            one = asked(formula)
            if empty:
                one = ExactAsked(one.terms, formula, {party: np.zeros_like(own) for party, own in one.sets.items()})
            kept: list[tuple[PartyId, RoundId, wire.Message]] = []
            look_up([one], wrap={SERVER: lying(hearing(kept))})
            relays = [message for _, _, message in kept if isinstance(message, SelectionRelay)]
            seen.append([(len(message.dealt), sorted(map(len, message.to_all.values()))) for message in relays])
    assert all(one == seen[0] for one in seen)


def test_what_is_opened_to_clients_is_uniform() -> None:
    """Sets are all empty; what passes between clients is half ones all the same, the answer's shares included."""
    one = asked(AND, positions=4096)
    one = ExactAsked(one.terms, AND, {party: np.zeros_like(own) for party, own in one.sets.items()})
    ones: list[float] = []

    def look(self: Any, deal: list[int], words: Any) -> Any:
        ones.append(float(np.unpackbits(words).mean()))
        return straight(self, deal, words)

    straight = Exchange.xor
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Exchange, "xor", look)
        assert look_up([one]).found[0].tolist() == []
    assert len(ones) == 9  # two levels of a union over three clients, one intersection, three clients
    assert all(0.45 < share < 0.55 for share in ones)


def flipped(sealed: bytes) -> bytes:
    return sealed[:-1] + bytes([sealed[-1] ^ 1])


def bent_relay(change: Any, to: PartyId = TWO, at: int = 2) -> dict[PartyId, Any]:
    def tell(party: PartyId, message: SelectionRelay) -> wire.Message:
        return change(message) if (party, message.step) == (to, at) else message

    return {SERVER: lying(about(SelectionRelay, tell))}


@pytest.mark.parametrize(
    ("change", "to", "at", "words"),
    [
        (lambda m: {"to_all": {**m.to_all, 3: flipped(m.to_all[3])}}, TWO, 2, "forged or replayed"),
        (lambda m: {"to_all": {3: m.to_all[3]}}, TWO, 2, "without some of its clients"),
        (lambda m: {"step": m.step + 1}, TWO, 2, "where step 2 was due"),
        (lambda m: {"dealt": m.dealt + b"\0"}, ASKER, 2, "dealt randomness of another length"),
        (lambda m: {"dealt": b"\0"}, TWO, 2, "a client that is to get none"),
        (lambda m: {"to_one": {**m.to_one, 2: flipped(m.to_one[2])}}, ASKER, 4, "forged or replayed"),
        (lambda m: {"to_one": {2: m.to_one[2]}}, ASKER, 4, "without some of its clients"),
    ],
)
def test_a_server_that_alters_a_share_is_noticed(change: Any, to: PartyId, at: int, words: str) -> None:
    wrap = bent_relay(lambda message: msgspec.structs.replace(message, **change(message)), to, at)
    looked = look_up([asked(AND)], wrap=wrap)
    assert looked.found == []
    assert isinstance(looked.problems[to], PeerMisbehaved)
    assert words in str(looked.problems[to])


def test_false_randomness_is_not_noticed_but_found_by_an_audit(tmp_path: Path) -> None:
    one = asked(AND)
    wrap = bent_relay(lambda m: msgspec.structs.replace(m, dealt=bytes([m.dealt[0] ^ 255]) + m.dealt[1:]), ASKER, 3)
    looked = look_up([one], wrap=wrap, record=tmp_path / "record")
    assert not looked.problems
    assert looked.found[0].tolist() != expected(one)
    assert {finding.id for finding in audited(tmp_path / "record") if finding.severity == "high"} >= {
        "false-randomness"
    }


def audited(path: Path) -> Any:
    session = open_session(path)
    assert session is not None
    return audit_scores(session).findings


def test_an_honest_record_is_clean(tmp_path: Path) -> None:
    look_up([asked(AND), asked(AND, number=1, seed=3)], record=tmp_path / "record")
    assert {finding.severity for finding in audited(tmp_path / "record")} <= {"info"}


@pytest.mark.parametrize("at", [-1, -len(REQUEST) - 1], ids=["atoms", "formula"])
def test_an_asker_that_asks_clients_different_things_gets_no_answer(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With other atoms, or another formula, for one of them the answer would be that client's own."""
    seal = SecAggSession.seal_for

    def seal_for(self: SecAggSession, peer: PartyId, use: str, secret: bytes) -> bytes:
        if use.startswith("ask scores/") and peer == THREE:
            changed = bytearray(secret)
            changed[at] = EITHER
            secret = bytes(changed)
        return seal(self, peer, use, secret)

    monkeypatch.setattr(SecAggSession, "seal_for", seal_for)
    looked = look_up([asked(AND)])
    assert looked.found == []
    assert "asked something else" in str(looked.problems[TWO])
    assert THREE in looked.problems


@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_without_a_client_there_is_no_answer_of_the_others(after: int) -> None:
    """Whenever it drops out: nobody helps with a result over fewer clients."""
    patience = SilentAfter(f"selection/{PURPOSE}", THREE, after)
    wrap = {THREE: falling_silent(SelectionStep, PURPOSE, after)}
    looked = look_up([asked(AND)], wrap=wrap, patience=patience)
    assert looked.found == []
    for party in (ASKER, TWO):
        assert isinstance(looked.problems[party], SumAbandoned)
        assert "an exact answer needs all of its clients, and 1 dropped out" in str(looked.problems[party])


def test_a_budget_counts_atoms_and_the_same_question_once() -> None:
    record = MemoryRecord()
    budgets = {TWO: ExactBudget(record, 4)}
    three = Formula((ATOM, ATOM, BOTH, ATOM, BOTH))
    looked = look_up([asked(AND), asked(AND, number=1), asked(three, number=2)], budgets=budgets)
    assert len(looked.found) == 2
    assert [charge.queries for charge in record.charges] == [2]
    assert isinstance(looked.problems[TWO], BudgetSpent)
    assert "client 2: 2 atoms were answered exactly, and 3 more go beyond the budget of 4" in str(
        looked.problems[ASKER]
    )


def test_what_another_session_has_spent_meanwhile_is_told() -> None:
    class SpentMeanwhile(ExactBudget):
        def may_come(self, terms: ScoreTerms, queries: bytes) -> None:
            """There is room yet."""

    looked = look_up([asked(AND)], budgets={THREE: SpentMeanwhile(MemoryRecord(), 1)})
    assert looked.found == []
    assert "client 3: 0 atoms were answered exactly" in str(looked.problems[ASKER])


def test_it_does_not_stand_against_an_active_server_and_says_so() -> None:
    looked = look_up([asked(AND)], TRUSTING["signed"])
    assert isinstance(looked.problems[ASKER], ParametersRefused)
    assert "--exact does not stand against --adversary active: ask without it" in str(looked.problems[ASKER])


@pytest.mark.parametrize(
    ("clients", "positions", "atoms", "asker"),
    [(3, 10, 0, 1), (3, 10, MOST_ATOMS + 1, 1), (2, 10, 1, 1), (3, 0, 1, 1), (3, 1 << 21, 1, 1), (3, 10, 1, 9)],
)
def test_sizes_that_no_exact_answer_has(clients: int, positions: int, atoms: int, asker: int) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        terms_of(clients, positions, atoms, asker=asker)


@pytest.mark.parametrize(
    "deal", [[int(Deal.AND), 1 << 40, 1], [int(Deal.AND), 1 << 20, 8], [int(Deal.SHUFFLE), 1, 9, 9]]
)
def test_clients_that_ask_for_more_randomness_than_there_can_be_get_none(deal: list[int]) -> None:
    def larger(message: wire.Message, round_id: RoundId) -> wire.Message:
        return msgspec.structs.replace(message, deal=deal) if isinstance(message, SelectionStep) else message

    looked = look_up([asked(AND)], wrap=dict.fromkeys(everyone(3), bending(larger)))
    assert looked.found == []
    assert "randomness of no known kind" in str(looked.problems[SERVER])

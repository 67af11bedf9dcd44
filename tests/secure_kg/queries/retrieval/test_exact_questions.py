"""Exact answers of whole questions over threads: the traversal of all graphs in one place, rules, budgets, trouble."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import launch.audit
from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.lookups.messages import NextStep
from protocols.scores.messages import ScoresAsked
from protocols.scores.topk.messages import SelectionStep
from secure_kg.queries.answers import answers as traversed
from secure_kg.queries.form import NamedQuery, QueryError
from secure_kg.queries.language.reading import read_question
from secure_kg.queries.naming import to_ids, to_names
from secure_kg.queries.retrieval.asking import Retrieved, Stored
from secure_kg.queries.retrieval.formulas import ExactPlan
from secure_kg.queries.retrieval.parts import Session
from secure_kg.queries.retrieval.rules import Exact, Rules
from secure_kg.queries.retrieval.session import Budgets
from secure_kg.queries.structures import anchor_columns, columns, read_row, structure_of
from secure_kg.runs.score_budget import exact_budget_of
from tests.support.bent_scores import Lie, about, bending, lying
from tests.support.federation_in_threads import Vanished
from tests.support.retrieval import ENTITIES, RELATIONS, World, ask, positions_of

KINDS = ("1p", "2i", "3i", "2u", "2in", "3in")
TELLING = {client: Rules("all", exact=None) for client in (1, 2, 3, 4)}
QUESTION = '?x : likes(?x, "e03") & !has("e05", ?x)'
ONLY: dict[str, Any] = {"exact": Exact.ONLY, "rules": TELLING}


def drawn(kind: str, rng: np.random.Generator) -> NamedQuery:
    """A query of this type, with any names."""
    structure = structure_of(kind)
    row = [
        int(rng.integers(len(ENTITIES) if column in anchor_columns(structure) else 2 * len(RELATIONS)))
        for column in range(columns(structure))
    ]
    return to_names(read_row(structure, row), ENTITIES, RELATIONS)


def expected(world: World, query: NamedQuery, clients: tuple[int, ...]) -> list[int]:
    """By traversal of what these clients have stored, in one place."""
    found = traversed(world.graph(clients), to_ids(query, ENTITIES, RELATIONS))
    return sorted(positions_of([ENTITIES[number] for number in found]).tolist())


def retrieved(session: Session, number: int = 0) -> Retrieved:
    assert not session.problems, session.problems
    found = session.outcomes[number].retrieved
    assert found is not None, session.outcomes[number].problem
    return found


def stored(session: Session, number: int = 0) -> Stored:
    found = retrieved(session, number).stored
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("clients", [3, 4])
def test_exact_answers_are_those_of_a_traversal_of_all_graphs(clients: int, seed: int) -> None:
    world, rng = World(clients=clients, facts=80, seed=seed), np.random.default_rng(seed)
    questions = [drawn(kind, rng) for kind in KINDS for _ in range(3)]
    session = ask(world, *questions, asker=1 + seed, **ONLY)
    everybody = tuple(range(1, clients + 1))
    sizes = set()
    for number, question in enumerate(questions):
        found = list(stored(session, number).positions)
        assert found == expected(world, question, everybody), question
        sizes.add(len(found))
    assert len(sizes) > 3  # some questions have several answers


def test_beside_them_predictions_say_which_are_stored() -> None:
    world = World(facts=80)
    for backend in ("topk", "masked"):
        question = '?x : likes(?x, "e03") | has("e05", ?x)'
        session = ask(world, question, exact=Exact.BESIDE, rules=TELLING, backend=backend)
        found, everybody = retrieved(session), expected(world, read_question(question), (1, 2, 3))
        assert [answer.position for answer in found.answers] == world.best(read_question(question), 5)
        assert [answer.stored for answer in found.answers] == [one.position in everybody for one in found.answers]
        assert found.stored is not None
        assert list(found.stored.positions) == everybody
        assert len(found.stored.answers) == min(5, len(everybody)) > 0
        for answer in found.stored.answers:
            assert answer.name is not None
            assert positions_of([answer.name]).tolist() == [answer.position]
        kinds = [step.kind for step in found.steps]
        assert kinds == ["exact", "entities", "projections", "scores", "names", "names"]


def test_without_the_option_nothing_is_said_of_facts() -> None:
    found = retrieved(ask(World(facts=80), '?x : likes(?x, "e03")', rules=TELLING))
    assert found.stored is None
    assert {answer.stored for answer in found.answers} == {None}


def test_an_encoder_without_negation_does_not_keep_exact_answers_from_it() -> None:
    world = World(facts=80)
    found = retrieved(ask(world, QUESTION, **ONLY))
    assert found.answers == ()
    assert found.stored is not None
    assert list(found.stored.positions) == expected(world, read_question(QUESTION), (1, 2, 3))
    assert [step.kind for step in found.steps] == ["exact", "names"]
    beside = ask(world, QUESTION, exact=Exact.BESIDE, rules=TELLING)
    assert "no definition of a negation" in beside.outcomes[0].problem


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        (frozenset[str](), ()),
        (frozenset({"likes"}), (2,)),
        (frozenset({"has", "owns"}), ()),
        (None, (2,)),
    ],
)
def test_a_client_tells_of_relations_that_its_rules_name_and_the_asker_itself_of_all(
    rules: frozenset[str] | None, told: tuple[int, ...]
) -> None:
    """Client 3 tells of nothing. Whoever tells of nothing sends as much as the others."""
    world, question, sent = World(facts=80), '?x : likes(?x, "e03")', []

    def note(message: wire.Message, round_id: RoundId) -> wire.Message:
        if isinstance(message, SelectionStep):
            sent.append((message.deal, len(message.to_all), [len(one) for one in message.to_one.values()]))
        return message

    mine = {1: Rules("all"), 2: Rules("all", exact=rules), 3: Rules("all")}
    session = ask(world, question, exact=Exact.ONLY, rules=mine, bends={2: bending(note)})
    alone = expected(world, read_question(question), (1,))
    assert list(stored(session).positions) == expected(world, read_question(question), (1, *told))
    assert bool(told) == (list(stored(session).positions) != alone)
    first, second, last = sent
    assert first == second == ([4, 3, 1], 6 + 28, [])
    assert last == ([6], 0, [3 + 28])


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ('?x : cures(?y, ?x) & has("e01", ?y)', "goes through a variable in between"),
        ('?x : likes(?x, "e03") & cures(?y, ?x) & has("e01", ?y)', "goes through a variable in between"),
        ('?x : ?x = "e03"', "this question names it"),
        ('?x : likes(?x, "e03") | !has(?x, "e01")', "needs a part without negation that bounds it"),
        ("?x : " + " | ".join(f'likes(?x, "e{n}")' for n in range(33)), "32 atoms at most, and this question has 33"),
        (f'?x : likes(?x, "{"e" * 300}")', "more than 255 bytes cannot be asked for"),
    ],
)
def test_what_has_no_exact_answer_is_one_line_and_the_session_goes_on(question: str, words: str) -> None:
    session = ask(World(facts=9), question, QUESTION, **ONLY)
    assert words in session.outcomes[0].problem
    assert "\n" not in session.outcomes[0].problem
    assert stored(session, 1)


@pytest.mark.parametrize("kind", ["2p", "3p", "ip", "pi", "up", "inp", "pin", "pni"])
def test_types_with_a_chain_are_refused(kind: str) -> None:
    with pytest.raises(QueryError, match="goes through a variable in between"):
        ExactPlan.of(drawn(kind, np.random.default_rng(0)))


def test_a_relation_that_a_client_hides_has_no_stored_answers_of_it() -> None:
    world, question = World(facts=80), '?x : likes(?x, "e03")'
    hiding = {client: Rules("all", frozenset({"likes"}), exact=None) for client in (2, 3)}
    alone = expected(world, read_question(question), (1,))
    assert list(stored(ask(world, question, exact=Exact.ONLY, rules=hiding)).positions) == alone
    assert list(stored(ask(world, question, **ONLY)).positions) != alone


def test_names_that_nobody_knows_have_no_stored_answers() -> None:
    assert stored(ask(World(facts=80), '?x : liked(?x, "e03")', **ONLY)).positions == ()
    assert stored(ask(World(facts=80), '?x : likes(?x, "e3")', **ONLY)).positions == ()


def test_a_budget_lasts_over_sessions_and_counts_what_is_not_told_as_well(tmp_path: Path) -> None:
    def asked(question: str) -> Session:
        rules = {1: TELLING[1], 2: Rules("all"), 3: TELLING[3]}
        budgets = {2: Budgets(exact=exact_budget_of(tmp_path, limit=3))}
        return ask(World(facts=80), question, exact=Exact.ONLY, rules=rules, budgets=budgets)

    stored(asked(QUESTION))
    outcome = asked(QUESTION).outcomes[0]
    assert outcome.retrieved is None
    assert outcome.problem == "client 2: 2 atoms were answered exactly, and 2 more go beyond the budget of 3"
    assert (tmp_path / "exact.jsonl").stat().st_mode & 0o77 == 0
    stored(asked('?x : likes(?x, "e03")'))


def test_records_are_audited_clean(tmp_path: Path) -> None:
    for exact, question in ((Exact.ONLY, QUESTION), (Exact.BESIDE, '?x : likes(?x, "e03")')):
        record, out = tmp_path / exact / "record", tmp_path / exact / "audit"
        record.parent.mkdir()
        stored(ask(World(facts=80), question, exact=exact, rules=TELLING, record=record))
        assert launch.audit.main([str(record), "--out", str(out)]) == 0
        told = (out / "audit.json").read_text()
        assert '"severity": "medium"' not in told
        assert '"severity": "low"' not in told
        assert "exact, queries: who asks, when, and how many atoms" in told
        content = next(record.glob("transcript-*.bin")).read_bytes()
        assert all(name not in content for name in (b"likes", b"has", b"e03", b"e05"))


def altered(party: PartyId, message: ScoresAsked) -> wire.Message:
    flipped = bytes([message.sealed[-1] ^ 1]) if party == 2 else message.sealed[-1:]
    return ScoresAsked(message.purpose, message.sealed[:-1] + flipped)


def announced_otherwise(party: PartyId, message: NextStep) -> wire.Message:
    return NextStep(message.kind, [3], message.table) if message.kind == "exact" and party == 2 else message


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        (about(ScoresAsked, altered), "has not asked this"),
        (about(NextStep, announced_otherwise), "asks under other terms"),
    ],
)
def test_a_server_that_alters_a_request_or_an_announcement_is_noticed(lie: Lie, words: str, tmp_path: Path) -> None:
    session = ask(World(facts=9), QUESTION, bends={SERVER: lying(lie)}, record=tmp_path / "record", **ONLY)
    assert not session.outcomes
    assert isinstance(session.problems[PartyId(2)], PeerMisbehaved)
    assert words in str(session.problems[PartyId(1)])
    assert launch.audit.main([str(tmp_path / "record"), "--out", str(tmp_path / "audit")]) == 3
    assert '"asking-forged"' in (tmp_path / "audit" / "audit.json").read_text()


@pytest.mark.parametrize("after", [0, 2])
def test_a_client_that_dies_in_the_middle_is_one_line_and_asking_again_gives_nothing(after: int) -> None:
    """Else the difference of an answer with it and one without it would be what it holds."""
    steps = 0

    def bend(message: wire.Message, round_id: RoundId) -> wire.Message:
        nonlocal steps
        steps += isinstance(message, SelectionStep)
        if steps > after:
            raise Vanished
        return message

    bends = {3: bending(bend)}
    session = ask(World(facts=80, clients=4), QUESTION, QUESTION, bends=bends, patience=0.5, **ONLY)
    problems = {outcome.problem for outcome in session.outcomes}
    assert [outcome.retrieved for outcome in session.outcomes] == [None, None]
    assert problems == {"an exact answer needs all of its clients, and 1 dropped out"}

"""Everything that is opened, whatever the step and the model, is over one set of clients: no two can be subtracted."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocols.exact.formula import Formula
from protocols.foundation import wire
from protocols.foundation.identifiers import SETUP, PartyId, RoundId
from protocols.lookups import steps, vectors
from protocols.lookups.vectors import Vectors
from protocols.scores import batches
from protocols.scores.interface import no_scores
from protocols.scores.messages import AskScores
from protocols.scores.topk.hidden_batches import as_bytes
from secure_kg.queries.retrieval.asking import Asking
from secure_kg.queries.retrieval.requests import Atom, Step, write_atoms, write_names, write_points, write_steps
from secure_kg.queries.retrieval.rules import Exact, Rules
from secure_kg.queries.retrieval.session import Budgets
from secure_kg.queries.retrieval.terms import Kind
from secure_kg.runs.score_budget import atom_budget_of, budget_of
from tests.support.bent_scores import bending
from tests.support.federation_in_threads import Vanished
from tests.support.retrieval import DIM, ENTITIES, RELATIONS, Bends, World, ask

QUESTION = '?x : cures("e01", ?x)'
"""Of four steps: an entity, a projection, scores and names."""
VICTIM = 3
REFUSED = "questions were answered before, and now without client 3"
TOLD = "has helped to open otherwise"
"""By a client that has heard so from another one."""
Look = Callable[[Asking], None]


def gone_from(step: int) -> Bends:
    """The victim takes part in so many steps, and then no more."""

    def bend(message: wire.Message, round_id: RoundId) -> wire.Message:
        if round_id != SETUP and round_id >= steps.round_of(step):
            raise Vanished
        return message

    return {VICTIM: bending(bend)}


def kept(folder: Path, world: World) -> dict[int, Budgets]:
    """Records on disk, as they are after earlier sessions; of those that do not vanish."""
    table = world.knowledge(1, Rules()).table
    return {
        one: Budgets(
            atom_budget_of(folder / str(one), DIM, table, askers=4), budget_of(folder / str(one), DIM, limit=DIM - 1)
        )
        for one in range(1, 6)
        if one != VICTIM
    }


def asked(folder: Path, bends: Bends | None = None, asker: int = 1) -> str:
    """A question to five clients; the problem it came to."""
    world = World(clients=5)
    session = ask(
        world,
        QUESTION,
        bends=bends,
        budgets=kept(folder, world),
        backend="masked",
        patience=1.0,
        asker=PartyId(asker),
    )
    return session.outcomes[0].problem


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_client_that_is_lost_on_the_way_ends_the_question(step: int, tmp_path: Path) -> None:
    """A count of the lookup less that of the scores would say whether it holds a name."""
    assert REFUSED in asked(tmp_path, gone_from(step))


def test_whoever_was_never_there_is_not_missed_until_it_comes(tmp_path: Path) -> None:
    assert asked(tmp_path, gone_from(0)) == ""
    assert asked(tmp_path, gone_from(0), asker=2) == ""
    problem = asked(tmp_path)
    assert TOLD in problem or "and now with client 3" in problem


def test_it_holds_across_sessions(tmp_path: Path) -> None:
    assert asked(tmp_path) == ""
    problem = asked(tmp_path, gone_from(0), asker=2)
    assert TOLD in problem or REFUSED in problem


def entities(asking: Asking) -> None:
    tools, names = asking._tools, list(ENTITIES[:4])
    step = asking._announced(Kind.ENTITIES, len(names))
    assert step.vectors is not None
    none = Vectors(np.zeros(len(names), np.bool_), np.zeros((0, DIM), np.float32))
    vectors.ask(tools.vectors, tools.session, step.vectors, write_names(names), none)


def scores(asking: Asking) -> None:
    tools, request = asking._tools, write_points(np.zeros((1, DIM), np.float32))
    terms = asking._announced(Kind.SCORES, 1).terms
    batches.ask(tools.scores, tools.session, terms, request, no_scores(terms))


def names_from(first: int) -> Look:
    def look(asking: Asking) -> None:
        terms = asking._announced(Kind.NAMES, 5).terms
        asking._tools.names.ask(asking._tools.session, terms, range(first, first + 5))

    return look


def relations_of(points: int) -> Look:
    def look(asking: Asking) -> None:
        tools, width = asking._tools, points * DIM
        step = asking._announced(Kind.PROJECTIONS, len(RELATIONS), points)
        assert step.vectors is not None
        none = Vectors(np.zeros(len(RELATIONS), np.bool_), np.zeros((0, width), np.float32))
        request = write_steps([Step(one, False, True, np.zeros(width, np.float32)) for one in RELATIONS])
        vectors.ask(tools.vectors, tools.session, step.vectors, request, none)

    return look


PAIRS = pytest.mark.parametrize(
    ("first", "second"),
    [(entities, scores), (relations_of(2), relations_of(4)), (names_from(0), names_from(5)), (scores, names_from(0))],
    ids=["rows and scores", "two widths", "names", "scores and names"],
)


def cheating(monkeypatch: pytest.MonkeyPatch, *looks: Look, **more: Any) -> Any:
    """A session of an asker that opens sums of its own choice."""

    def all_of_them(self: Asking, query: object) -> None:
        for look in looks:
            look(self)

    monkeypatch.setattr(Asking, "ask", all_of_them)
    return ask(World(encoder="q2p", clients=5), QUESTION, backend="masked", patience=1.0, **more)


@PAIRS
def test_no_two_steps_are_opened_over_different_clients(
    first: Look, second: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a record on disk, too."""
    session = cheating(monkeypatch, first, second, bends=gone_from(1))
    assert REFUSED in session.outcomes[0].problem


def test_nor_in_two_sessions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    world = World(encoder="q2p", clients=5)
    first = cheating(monkeypatch, entities, budgets=kept(tmp_path, world))
    assert first.outcomes[0].problem == ""
    second = cheating(monkeypatch, names_from(0), budgets=kept(tmp_path, world), bends=gone_from(0))
    assert REFUSED in second.outcomes[0].problem


def test_an_asker_that_leaves_a_scorer_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be missing like a dropout, and the asker would choose over whom a sum is opened."""

    def bend(message: wire.Message, round_id: RoundId) -> wire.Message:
        if not isinstance(message, AskScores):
            return message
        return AskScores(message.purpose, {to: one for to, one in message.sealed.items() if to != VICTIM})

    session = cheating(monkeypatch, entities, scores, bends={1: bending(bend)})
    assert session.outcomes == []
    assert {str(problem) for problem in session.problems.values()} == {
        "client 1 has not asked client 3, which is there to be asked"
    }


def hidden_scores(asking: Asking) -> None:
    tools, step = asking._tools, asking._announced(Kind.HIDDEN, 1, 4, 4)
    batches.ask(
        tools.hidden(step), tools.session, step.terms, as_bytes(np.zeros((1, DIM), np.float32)), no_scores(step.terms)
    )


def facts(asking: Asking) -> None:
    terms = asking._announced(Kind.EXACT, 1).terms
    own = np.zeros((1, terms.positions), np.bool_)
    request = write_atoms([Atom(ENTITIES[1], RELATIONS[0], False)])
    asking._tools.exact.ask(asking._tools.session, terms, Formula((0,)), request, own)


@pytest.mark.parametrize(
    ("positions", "more"),
    [(scores, {}), (hidden_scores, {"hidden": True}), (facts, {"exact": Exact.ONLY})],
    ids=["topk", "hidden", "exact"],
)
@pytest.mark.parametrize("lookup_first", [True, False])
def test_answers_over_all_clients_belong_to_the_set(
    positions: Look, more: dict[str, Any], lookup_first: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What all clients have, less what all but the victim have, would be the victim's."""
    world = World(clients=5)
    without: dict[str, Any] = {"bends": gone_from(0), "patience": 3.0, "backend": "masked"}
    both = [(entities, without), (positions, {"backend": "topk"} | more)]
    problems = []
    for look, options in both if lookup_first else reversed(both):
        monkeypatch.setattr(Asking, "ask", lambda self, query, look=look: look(self))
        session = ask(world, QUESTION, budgets=kept(tmp_path, world), **options)
        told = [str(one) for who, one in session.problems.items() if who != VICTIM]
        problems.append(" ".join([*told, *filter(None, (outcome.problem for outcome in session.outcomes))]))
    assert problems[0] == ""
    assert "and now with client 3" in problems[1] or REFUSED in problems[1] or TOLD in problems[1]


SESSIONS: list[tuple[str, dict[str, Any]]] = [("gqe", {"bends": gone_from(0), "patience": 3.0}), ("q2p", {})]


def test_who_holds_a_name_does_not_depend_on_the_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Asking, "ask", lambda self, query: entities(self))
    problems = []
    for encoder, options in SESSIONS:
        world = World(encoder=encoder, clients=5)
        session = ask(world, QUESTION, backend="masked", budgets=kept(tmp_path, world), **options)
        problems.append(session.outcomes[0].problem)
    assert problems[0] == ""
    assert "and now with client 3" in problems[1] or TOLD in problems[1]


def test_an_absence_costs_nothing_where_an_answer_needs_all_clients(tmp_path: Path) -> None:
    """Else a set without the victim would be on record, over which no such answer can ever be."""
    world, problems = World(clients=5), []
    for bends in (gone_from(0), None):
        session = ask(world, QUESTION, backend="topk", bends=bends, budgets=kept(tmp_path, world), patience=3.0)
        problems.append(session.outcomes[0].problem)
    assert "client 3 dropped out, and this question needs all clients" in problems[0]
    assert problems[1] == ""


def test_without_its_records_a_client_begins_anew(tmp_path: Path) -> None:
    """The way out that documents name. Selections leave nothing among the means that are counted."""
    world = World(clients=5)
    assert ask(world, QUESTION, backend="topk", budgets=kept(tmp_path, world)).outcomes[0].problem == ""
    assert not list(tmp_path.glob("*/means.jsonl"))
    for record in tmp_path.glob("*/atoms.jsonl"):
        record.unlink()
    assert asked(tmp_path, gone_from(0)) == ""

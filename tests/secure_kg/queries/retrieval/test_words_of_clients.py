"""What clients say when something goes wrong tells of nobody's rows or relations; names of peers are only shown."""

import contextlib
import io
from collections.abc import Callable, Sequence
from unittest.mock import patch

import numpy as np
import pytest
import torch

from launch import ask_output
from protocols.foundation import wire
from protocols.foundation.errors import EncodingOverflow
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.lookups import vectors
from protocols.lookups.messages import NextStep
from protocols.lookups.vectors import VectorBudget, Vectors
from protocols.scores import batches
from protocols.scores.budget import MemoryRecord
from protocols.scores.interface import no_scores
from secure_kg.foundation.errors import UserError
from secure_kg.models.queries.model import QueryModel
from secure_kg.queries.form import NamedQuery
from secure_kg.queries.retrieval.asking import Asking
from secure_kg.queries.retrieval.knowledge import Knowledge
from secure_kg.queries.retrieval.requests import Step, write_points, write_steps
from secure_kg.queries.retrieval.rules import Rules
from secure_kg.queries.retrieval.session import Budgets
from secure_kg.queries.retrieval.telling import OWN_WORK
from secure_kg.queries.retrieval.terms import Kind
from secure_kg.report.html import markup
from tests.support.bent_scores import about, lying
from tests.support.retrieval import DIM, World, answers, ask

QUESTION = '?x : cures(?x, "e01")'
ASKER = PartyId(1)
Cheat = Callable[[Asking, NamedQuery], None]


def told(cheat: Cheat, world: World) -> tuple[str, int]:
    """What the asker reads, without who said it first, and how often budgets were charged."""
    records = {client: MemoryRecord() for client in range(1, world.clients + 1)}
    budgets = {client: Budgets(VectorBudget(record, 1000, DIM)) for client, record in records.items()}
    with patch.object(Asking, "ask", cheat):
        session = ask(world, QUESTION, budgets=budgets)
    said = str(session.problems.get(ASKER, ""))
    return said.partition(": ")[2], sum(len(record.charges) for record in records.values())


def projecting(relation: str, points: int, fill: float) -> Cheat:
    def cheat(self: Asking, query: NamedQuery) -> None:
        width = points * DIM
        step = self._announced(Kind.PROJECTIONS, 1, points)
        assert step.vectors is not None
        request = write_steps([Step(relation, False, False, np.full(width, fill, np.float32))])
        nothing = Vectors(np.array([False]), np.zeros((0, width), np.float32))
        vectors.ask(self._tools.vectors, self._tools.session, step.vectors, request, nothing)

    return cheat


@pytest.mark.parametrize(
    ("encoder", "points", "fill", "words"),
    [
        ("gqe", 2, 0.0, "a point of another width than this model's"),
        ("q2p", 2, 3e38, "points with numbers that are too large"),
    ],
)
def test_a_false_projection_is_refused_alike_whoever_knows_the_relation(
    encoder: str, points: int, fill: float, words: str
) -> None:
    found = {told(projecting(name, points, fill), World(encoder, "dot")) for name in ("has", "likes", "nothing")}
    assert found == {(words, 0)}


@pytest.mark.parametrize("fill", [3e38, 3e37])
def test_points_of_a_score_are_refused_by_their_size_alone(fill: float) -> None:
    def cheat(self: Asking, query: NamedQuery) -> None:
        step = self._announced(Kind.SCORES, 1)
        points = write_points(np.full((1, DIM), fill, np.float32))
        batches.ask(self._tools.scores, self._tools.session, step.terms, points, no_scores(step.terms))

    assert told(cheat, World(score="dot"))[0] == "points with numbers that are too large"


def test_an_asker_whose_own_points_are_too_large_reads_one_line() -> None:
    with patch.object(Asking, "_points", lambda self, plan: np.full((1, DIM), np.nan, np.float32)):
        session = ask(World(), QUESTION)
    assert not session.problems
    assert session.outcomes[0].problem == "this question cannot be asked: its points have numbers beyond 1024"


def test_what_overflows_in_a_clients_own_work_is_clipped() -> None:
    knowledge = World(score="dot").knowledge(2, Rules())
    with torch.no_grad(), np.errstate(over="ignore"):
        knowledge._model.rows.fill_(3e38)
        assert np.isfinite(knowledge.scores(np.full((1, DIM), 9.0, np.float32)).values).all()
        moved = knowledge.projected([Step("has", False, False, np.full(DIM, 3e38, np.float32))], DIM, for_others=True)
    assert moved.values.tolist() == [[float(np.finfo(np.float32).max)] * DIM]


@pytest.mark.parametrize(
    "problem", [UserError("/a/private/path"), EncodingOverflow("a row of 13.0006"), RuntimeError("a private detail")]
)
def test_what_fails_in_a_clients_own_work_is_told_in_one_sentence(problem: Exception) -> None:
    def fails(self: Knowledge, names: Sequence[str], *, for_others: bool) -> Vectors:
        if for_others:
            raise problem
        return entity_rows(self, names, for_others=for_others)

    entity_rows = Knowledge.entity_rows
    with patch.object(Knowledge, "entity_rows", fails):
        session = ask(World(), QUESTION)
    assert str(session.problems[ASKER]).partition(": ")[2] == OWN_WORK
    assert any(one is problem for one in session.problems.values())  # its own console has it


class LongRows(World):
    @property
    def whole(self) -> QueryModel:
        made = super().whole
        with torch.no_grad():
            made.rows.mul_(20)
        return made


@pytest.mark.parametrize("victims", [(2,), (2, 3)])
def test_a_server_that_announces_a_shorter_norm_learns_no_length(victims: tuple[int, ...]) -> None:
    def lie(party: PartyId, message: NextStep) -> wire.Message:
        lies = message.kind == "hidden scores" and party in victims
        return NextStep(message.kind, [message.sizes[0], 0, message.sizes[2]], message.table) if lies else message

    session = ask(LongRows(), QUESTION, bends={SERVER: lying(about(NextStep, lie))}, hidden=True)
    assert "asks under other terms" in str(session.problems[ASKER])


@pytest.mark.parametrize("name", ["\x1b[2J\x9b31m", "\u202e\n\r\u2028", "\ud800"], ids=ascii)
def test_names_of_peers_are_shown_and_do_nothing(name: str) -> None:
    def named(self: Knowledge, positions: Sequence[int]) -> dict[int, str]:
        return {position: f"{name}{position}" for position in positions if position in self.own_names}

    with patch.object(Knowledge, "named", named):
        session = ask(World(), QUESTION, QUESTION, top=14)
    assert any(name in (found or "") for _, found in answers(session))
    retrieved = session.outcomes[0].retrieved
    assert retrieved is not None
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding="utf-8") as out, contextlib.redirect_stdout(out):
        ask_output._show_answers(retrieved.answers)
        out.flush()
        shown = raw.getvalue().decode()
    assert not {*shown} & ({*name} - {*"[2J31m\n"})
    assert shown.count("\n") == len(retrieved.answers) + 4
    page = "".join(markup(one.name or "") for one in retrieved.answers)
    assert page.encode()
    assert not {*page} & ({*name} - {*"[2J31m\n"})

"""Plans of questions, requests as they are written and read, and announcements that are outside of the settings."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from protocols.exact.terms import MOST_ATOMS
from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import PartyId
from protocols.lookups.messages import NextStep
from secure_kg.foundation.errors import UserError
from secure_kg.queries.language.reading import read_question
from secure_kg.queries.retrieval.plan import Plan
from secure_kg.queries.retrieval.requests import (
    CELL_BYTES,
    Atom,
    Step,
    read_atoms,
    read_names,
    read_points,
    read_steps,
    write_atoms,
    write_names,
    write_points,
    write_steps,
)
from secure_kg.queries.retrieval.rules import Exact, Rules
from secure_kg.queries.retrieval.terms import MOST_STEPS, PublicTerms
from tests.support.retrieval import World

TABLE = b"t" * 32
PUBLIC = PublicTerms(
    clients=(PartyId(1), PartyId(2), PartyId(3)),
    asker=PartyId(1),
    union=20,
    dim=4,
    score="dot",
    clip=16.0,
    backend="topk",
    top=5,
    least=1,
)


def test_a_plan_has_every_part_once_and_in_the_order_of_need() -> None:
    plan = Plan.of(read_question('?x : a(?x, ?y) & (b(?y, "k") | c(?y, "m")) & d(?x, "k")'))
    assert len(plan.branches) == 2
    assert sorted(anchor.entity for anchor in plan.anchors) == ["k", "m"]
    assert [sorted(node.relation for node in level) for level in plan.levels] == [["b", "c", "d"], ["a", "a"]]


def test_an_anchor_alone_has_a_plan() -> None:
    plan = Plan.of(read_question('?x : ?x = "k"'))
    assert (len(plan.anchors), plan.levels) == (1, ())


def test_requests_come_back_and_their_size_follows_from_numbers() -> None:
    names = ["", "ä" * 127, "x\ud800"]
    assert read_names(write_names(names), 3) == names
    steps = [Step("r", True, False, np.arange(3, dtype=np.float32)), Step("s" * 9, False, True, np.ones(3, np.float32))]
    written = write_steps(steps)
    for one, other in zip(read_steps(written, 2, 3, 2.0), steps, strict=True):
        assert (one.relation, one.inverse, one.of_anchor) == (other.relation, other.inverse, other.of_anchor)
        np.testing.assert_array_equal(one.point, other.point)
    assert len(written) == 2 * (1 + CELL_BYTES + 12)
    atoms = [Atom("", "r" * 255, True), Atom("ä", "", False)]
    assert read_atoms(write_atoms(atoms), 2) == atoms
    assert len(write_atoms(atoms)) == 2 * (1 + 2 * CELL_BYTES)
    with pytest.raises(UserError, match="255 bytes"):
        write_names(["x" * 256])


@pytest.mark.parametrize(
    "read",
    [
        lambda: read_names(b"x" * CELL_BYTES, 2),
        lambda: read_names(b"\1ab".ljust(CELL_BYTES, b"\0"), 1),
        lambda: read_names(b"\1\xff".ljust(CELL_BYTES, b"\0"), 1),
        lambda: read_steps(b"\4".ljust(1 + CELL_BYTES + 4, b"\0"), 1, 1, 2.0),
        lambda: read_steps(b"", 1, 1, 2.0),
        lambda: read_atoms(b"", 1),
        lambda: read_atoms(b"\2".ljust(1 + 2 * CELL_BYTES, b"\0"), 1),
        lambda: read_atoms(b"\0\1ab".ljust(1 + 2 * CELL_BYTES, b"\0"), 1),
        lambda: read_points(write_points(np.array([np.nan], np.float32)), 1, 1, 2.0),
        lambda: read_points(write_points(np.array([-2.1], np.float32)), 1, 1, 2.0),
        lambda: read_steps(write_steps([Step("r", False, False, np.array([2.1], np.float32))]), 1, 1, 2.0),
        lambda: World().knowledge(1, Rules()).state(np.zeros(12, np.float32)),
        lambda: World("q2p", "dot").knowledge(1, Rules()).state(np.zeros(18, np.float32)),
        lambda: World("tree-lstm", "dot").knowledge(1, Rules()).state(np.zeros(24, np.float32)),
    ],
)
def test_requests_that_are_none_are_refused(read: Callable[[], object]) -> None:
    with pytest.raises(PeerMisbehaved):
        read()


@pytest.mark.parametrize(
    "announced",
    [
        NextStep("entities", [0], TABLE),
        NextStep("entities", [513], TABLE),
        NextStep("entities", [1], b""),
        NextStep("projections", [1], TABLE),
        NextStep("projections", [512, 4096], TABLE),
        NextStep("scores", [0], TABLE),
        NextStep("hidden scores", [1, 0, 0], TABLE),
        NextStep("names", [6], TABLE),
        NextStep("triples", [1], TABLE),
        NextStep("exact", [1], TABLE),
    ],
)
def test_steps_outside_of_the_settings_are_refused(announced: NextStep) -> None:
    with pytest.raises(PeerMisbehaved, match="settings do not know"):
        PUBLIC.step(0, announced)


@pytest.mark.parametrize("norms", [(5000, 3), (3, 5000), (21, 3)])
def test_norms_that_no_asker_announces_are_refused(norms: tuple[int, int]) -> None:
    hidden = dataclasses.replace(PUBLIC, hidden=True, backend="topk")
    assert hidden.step(0, NextStep("hidden scores", [1, 3, 3], TABLE)).shape
    with pytest.raises(PeerMisbehaved, match="settings do not know"):
        hidden.step(0, NextStep("hidden scores", [1, *norms], TABLE))


@pytest.mark.parametrize("exact", [Exact.BESIDE, Exact.ONLY])
@pytest.mark.parametrize("sizes", [[0], [MOST_ATOMS + 1], [(1 << 32) - 1], [], [1, 1]])
def test_exact_steps_of_hostile_sizes_are_refused(exact: Exact, sizes: list[int]) -> None:
    public = dataclasses.replace(PUBLIC, exact=exact)
    assert public.step(0, NextStep("exact", [MOST_ATOMS], TABLE)).terms.queries == MOST_ATOMS
    with pytest.raises(PeerMisbehaved, match="settings do not know"):
        public.step(0, NextStep("exact", sizes, TABLE))


def test_where_exact_answers_alone_are_wanted_nothing_else_is_answered() -> None:
    only = dataclasses.replace(PUBLIC, exact=Exact.ONLY)
    assert only.step(0, NextStep("names", [5], TABLE))
    for announced in (NextStep("entities", [1], TABLE), NextStep("scores", [1], TABLE)):
        assert PUBLIC.step(0, announced)
        with pytest.raises(PeerMisbehaved, match="settings do not know"):
            only.step(0, announced)


def test_there_is_a_last_step() -> None:
    assert PUBLIC.step(MOST_STEPS - 1, NextStep("names", [5], TABLE)).terms.positions == 5
    with pytest.raises(PeerMisbehaved):
        PUBLIC.step(MOST_STEPS, NextStep("names", [5], TABLE))

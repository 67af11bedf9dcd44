"""Servers that alter what they pass on, clients that die, and what audits say of records."""

from pathlib import Path
from typing import Any

import pytest

import launch.audit
from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import SERVER, SETUP, PartyId, RoundId
from protocols.lookups.messages import NextStep
from protocols.scores.messages import AskScores, ScoresAsked
from tests.support.bent_scores import Lie, about, bending, lying
from tests.support.federation_in_threads import Vanished
from tests.support.retrieval import Bends, World, answers, ask

CHAIN = '?x : cures(?y, ?x) & has("e01", ?y)'


def altered(party: PartyId, message: ScoresAsked) -> wire.Message:
    flipped = bytes([message.sealed[-1] ^ 1]) if party == 2 else message.sealed[-1:]
    return ScoresAsked(message.purpose, message.sealed[:-1] + flipped)


def announced_otherwise(party: PartyId, message: NextStep) -> wire.Message:
    several = message.kind == "entities" and party == 2
    return NextStep(message.kind, [2], message.table) if several else message


def sent_home(party: PartyId, message: NextStep) -> wire.Message:
    """One client is told that all is over."""
    return NextStep("end", [], message.table) if message.kind == "entities" and party == 2 else message


def audited(record: Path, out: Path) -> int:
    return launch.audit.main([str(record), "--out", str(out)])


@pytest.mark.parametrize(
    "settings",
    [{"backend": "topk"}, {"backend": "masked", "least": 2}, {"backend": "topk", "hidden": True, "least": 2}],
)
def test_honest_sessions_are_audited_clean(settings: dict[str, Any], tmp_path: Path) -> None:
    session = ask(World(), CHAIN, '?x : nothing(?x, "e01")', CHAIN, record=tmp_path / "record", **settings)
    assert len(answers(session, 2)) == 5
    assert audited(tmp_path / "record", tmp_path / "audit") == 0
    assert '"high": 0' in (tmp_path / "audit" / "audit.json").read_text()
    assert "not ended" not in (tmp_path / "audit" / "audit.json").read_text()


def test_scores_in_clear_are_found(tmp_path: Path) -> None:
    ask(World(), CHAIN, record=tmp_path / "record", backend="plain")
    assert audited(tmp_path / "record", tmp_path / "audit") == 3


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        (about(ScoresAsked, altered), "has not asked this"),
        (about(NextStep, announced_otherwise), "asks under other terms"),
        (about(NextStep, sent_home), "announced by somebody who is no client"),
    ],
)
def test_a_server_that_alters_a_request_or_an_announcement_is_noticed(lie: Lie, words: str, tmp_path: Path) -> None:
    session = ask(World(), CHAIN, bends={SERVER: lying(lie)}, record=tmp_path / "record")
    assert not session.outcomes
    assert isinstance(session.problems[PartyId(2)], PeerMisbehaved)
    assert words in str(session.problems[PartyId(2)])
    assert words in str(session.problems[PartyId(1)])
    assert audited(tmp_path / "record", tmp_path / "audit") == 3
    assert '"asking-forged"' in (tmp_path / "audit" / "audit.json").read_text()


def dying(after: int) -> Bends:
    """Client 3 is gone in place of its message of this number after the set-up."""
    said = 0

    def bend(message: wire.Message, round_id: RoundId) -> wire.Message:
        nonlocal said
        said += round_id != SETUP
        if said > after:
            raise Vanished
        return message

    return {3: bending(bend)}


def test_a_client_whose_program_fails_says_so_and_nobody_waits() -> None:
    def bend(message: wire.Message, round_id: RoundId) -> wire.Message:
        if round_id == SETUP:
            return message
        raise RuntimeError("a private detail")

    session = ask(World(), CHAIN, bends={3: bending(bend)}, patience=30.0)
    assert "client 3: it cannot go on" in str(session.problems[PartyId(1)])


@pytest.mark.parametrize("after", [0, 7])
@pytest.mark.parametrize("backend", ["masked", "topk"])
def test_without_a_client_that_dies_too_few_are_left(backend: str, after: int) -> None:
    session = ask(World(), CHAIN, bends=dying(after), backend=backend, patience=0.5)
    assert session.outcomes[0].retrieved is None
    assert session.outcomes[0].problem
    assert "\n" not in session.outcomes[0].problem


def test_after_a_client_has_died_the_rest_is_not_asked() -> None:
    session = ask(World(), *[CHAIN] * 4, bends=dying(7), backend="masked", patience=0.5)
    first, second = session.outcomes
    assert "1 client has" in first.problem
    assert (second.problem, session.stopped) == (first.problem, True)


def test_of_five_clients_four_answer(tmp_path: Path) -> None:
    question, record = '?x : cures(?x, "e03") & has(?x, "e01")', tmp_path / "record"
    session = ask(World(clients=5), question, bends=dying(0), backend="masked", patience=0.5, asker=2, record=record)
    retrieved = session.outcomes[0].retrieved
    assert retrieved is not None, session.outcomes[0].problem
    assert retrieved.contributors == (1, 4, 5)
    assert audited(record, tmp_path / "audit") == 0


def test_a_request_has_one_size_whatever_the_names() -> None:
    sizes = set()
    for question in ('?x : cures("e01", ?x)', '?x : owns("e11", ?x)'):
        kept: list[int] = []

        def note(message: wire.Message, round_id: RoundId, kept: list[int] = kept) -> wire.Message:
            if isinstance(message, AskScores):
                kept.append(len(message.sealed[2]))
            return message

        answers(ask(World(), question, bends={1: bending(note)}))
        sizes.add(tuple(kept))
    assert len(sizes) == 1

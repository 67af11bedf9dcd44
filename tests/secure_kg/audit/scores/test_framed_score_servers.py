"""Hostile clients in recorded score sessions: an honest server is accused of nothing, and the audit comes to its end.

And servers that do what no check has a name for: their own program does otherwise.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

from benchmarks.cheating import score_clients, score_stage
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.score_clients import FRAMER, Added
from benchmarks.cheating.score_stage import ACTIVE, ASKER, Asked, ScoreStage, terms_of
from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId
from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.scores.layout import ScoreLayout
from protocols.scores.messages import PURPOSE, BatchServed, ScoresTotal
from protocols.scores.plain import ClearQueries, ClearScores
from protocols.scores.topk.messages import SelectionRelay
from protocols.session.conversation import Abandon
from protocols.sums.secagg.messages import PEERS_BYTES, MaskedInput
from secure_kg.audit.scores.audit import ScoreAudit, audit_scores
from secure_kg.audit.scores.session import open_session
from secure_kg.audit.view.statistics import byte_histogram, uniform_p

IN_CLEAR = {"clear-scores", "clear-queries"}


def audited(stage: ScoreStage) -> ScoreAudit:
    session = open_session(stage.run)
    assert session is not None
    return audit_scores(session, stage.directory)


def high(told: ScoreAudit) -> set[str]:
    return {finding.id for finding in told.findings if finding.severity == "high"}


@pytest.mark.parametrize(
    ("backend", "step", "added"),
    [
        ("masked", "advertise", score_clients.added_to_sums),
        ("topk", "selection", score_clients.added_to_selections),
        ("plain", "input", lambda: [(ClearQueries(PURPOSE, b"x"), 1), (ClearScores(PURPOSE, np.zeros(4, "<u4")), 1)]),
        ("masked", "advertise", lambda: [(Abandon(HOLDERS, "no"), 4)]),
    ],
    ids=["sums", "selections", "in clear", "refusal"],
)
def test_what_the_server_drops_accuses_nobody(
    backend: str, step: str, added: Callable[[], Added], tmp_path: Path
) -> None:
    played = score_clients.framing(tmp_path, backend, step, added)
    assert isinstance(played.stage, ScoreStage)
    assert (len(played.stage.answers), played.stage.crashed, played.stage.refused) == (2, [], {})
    told = audited(played.stage)
    assert high(told) == (IN_CLEAR if backend == "plain" else set())
    (ignored,) = [finding for finding in told.findings if finding.id == "frames-ignored"]
    assert all(f"client {FRAMER}" in line for line in ignored.evidence)


@pytest.mark.parametrize("purpose", [HOLDERS, "xx"])
def test_words_too_narrow_for_the_field_are_the_clients_own_and_end_no_check(purpose: str, tmp_path: Path) -> None:
    """They are not uniform, and the finding says whose they are."""
    made = MaskedInput(purpose, np.arange(4, dtype="<u4"), bytes(PEERS_BYTES))
    played = score_clients.framing(tmp_path, "masked", "advertise", lambda: [(made, 1)])
    assert isinstance(played.stage, ScoreStage)
    told = audited(played.stage)
    assert high(told) <= {"masked-values-not-uniform"}
    assert all(f"client {FRAMER}" in line for one in told.findings if one.severity == "high" for line in one.evidence)
    assert uniform_p(byte_histogram(np.arange(4, dtype="<u4")), in_field=True) == 0.0


def test_noise_ends_the_session_and_accuses_nobody(tmp_path: Path) -> None:
    played = score_clients.noise(tmp_path)
    assert not played.got, played.evidence
    assert isinstance(played.stage, ScoreStage)
    assert "malformed" in played.stage.server_end


def test_a_server_that_ended_the_session_is_not_accused_of_missing_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scorer contributes a false check in the first batch, so that the asker goes home, and no other batch comes."""
    straight, made = ScoreLayout.vector, list[int]()

    def false_check(self: ScoreLayout, *given: object) -> object:
        vector = straight(self, *given)  # type: ignore[arg-type]
        made.append(1)
        if len(made) == 2:
            vector[-1:] += np.uint32(1)
        return vector

    monkeypatch.setattr(ScoreLayout, "vector", false_check)
    stage = ScoreStage(tmp_path, "masked", [Asked.of(terms_of(one), b"q%d" % one) for one in range(2)], ACTIVE)
    stage.perform(Cheat())
    assert stage.answers == {}
    assert "the server or a scorer" in stage.refused[str(ASKER)]
    assert high(audited(stage)) == set()


Change = Callable[[PartyId, wire.Message], Iterable[wire.Message]]


class Changes(Cheat):
    def __init__(self, change: Change) -> None:
        super().__init__()
        self._change = change

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        return self._change(to, message)


def total_twice(to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
    return (message, message) if isinstance(message, ScoresTotal) else (message,)


def not_served(to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
    """One scorer is left waiting."""
    return () if isinstance(message, BatchServed) and to == FRAMER else (message,)


def given_up_early(to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
    """The total was opened, and the asker is told that the batch came to nothing."""
    return (Abandon(PURPOSE, "no"),) if isinstance(message, ScoresTotal) else (message,)


def relay_twice(to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
    return (message, message) if isinstance(message, SelectionRelay) and message.step == 3 else (message,)


@pytest.mark.parametrize(
    ("backend", "change"),
    [("masked", total_twice), ("masked", given_up_early), ("topk", relay_twice)],
)
def test_what_the_program_of_a_server_does_not_do_is_found(
    backend: str, change: Change, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(score_stage, "_SECONDS", 5.0)  # parties wait in vain for what was changed
    asked = [Asked.of(terms_of(number), f"queries {number}".encode()) for number in range(2)]
    stage = ScoreStage(tmp_path, backend, asked, score_clients.SEMI_HONEST)
    stage.perform(Changes(change))
    assert "not-as-programmed" in high(audited(stage))


def test_the_program_explains_an_honest_session_to_its_end(tmp_path: Path) -> None:
    stage = ScoreStage(tmp_path, "topk", [Asked.of(terms_of(0), b"queries")], score_clients.SEMI_HONEST)
    stage.perform(Cheat())
    (check,) = [one for one in audited(stage).checks if one.id == "as-programmed"]
    assert check.status == "passed"
    sent, _, of = check.looked_at.split()[:3]
    assert sent == of

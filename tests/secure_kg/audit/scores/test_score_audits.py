"""Audits of recorded score queries: honest sessions stay clean, and what a server does otherwise is named."""

import dataclasses
import json
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from benchmarks.cheating import score_stage, scores
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.score_stage import ACTIVE, SEMI_HONEST, VICTIM, Asked, ScoreStage, terms_of
from launch.audit import main
from protocols.foundation import wire
from protocols.foundation.errors import PeerLost, SumAbandoned
from protocols.foundation.identifiers import PartyId
from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.holders.secret import SecretHolderServer
from protocols.registry import SCORES
from protocols.scores.covering import Covering
from protocols.scores.encrypted.messages import EncryptedTotal
from protocols.scores.messages import AskScores, BatchServed, ScoresAsked, ScoresTotal
from protocols.scores.plain import ClearScores
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.messages import DealtSeed, SelectionRelay
from protocols.scores.topk.server import DealingServer, TopKServer
from protocols.session.server_session import ServerSession
from protocols.sums.totals import SumTotal
from protocols.transport.tap import Tap, read_transcript
from secure_kg.audit.checks.secrets import Seeds
from secure_kg.audit.records.report import ScoreReport
from secure_kg.audit.scores.audit import ScoreAudit, audit_scores
from secure_kg.audit.scores.session import open_session
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.runs.records.scores import ScoreSession
from secure_kg.runs.run_folder import read_json, write_json
from secure_kg.runs.score_recording import RECORDS
from tests.support.score_cases import every_backend

SEEN_BY_ALL = {
    "transcript-integrity",
    "whole-score-session",
    "askings-relayed",
}
OF_SUMS = {"sums-recomputed", "both-shares", "one-set-of-survivors", "uniform-masked-values", "relayed-as-sent"}


def staged(path: Path, backend: str, least: int = 1) -> ScoreStage:
    terms = [dataclasses.replace(terms_of(number), least=least) for number in range(2)]
    asked = [Asked.of(one, f"queries {number}".encode()) for number, one in enumerate(terms)]
    return ScoreStage(path, backend, asked, ACTIVE if SCORES[backend].stands_against_active else SEMI_HONEST)


def audited(stage: ScoreStage) -> ScoreAudit:
    session = open_session(stage.run)
    assert session is not None
    return audit_scores(session, stage.directory)


def high(told: ScoreAudit) -> set[str]:
    return {finding.id for finding in told.findings if finding.severity == "high"}


def passed(told: ScoreAudit) -> set[str]:
    return {check.id for check in told.checks if check.status == "passed"}


@every_backend
@pytest.mark.parametrize("least", [1, 3])
def test_an_honest_session_has_no_high_finding_but_what_plain_scores_show(
    backend: str, least: int, tmp_path: Path
) -> None:
    stage = staged(tmp_path, backend, least)
    stage.perform(Cheat())
    assert (len(stage.answers), stage.crashed, stage.refused) == (2, [], {})
    told = audited(stage)
    assert high(told) == ({"clear-scores", "clear-queries"} if backend == "plain" else set())
    titles = [one.title for one in told.findings]
    assert len(titles) == len(set(titles))  # also of what the server received and passed on
    assert passed(told) >= SEEN_BY_ALL
    assert not any(finding.severity == "medium" for finding in told.findings)
    if stage.directory is not None:
        (keys,) = [check for check in told.checks if check.id == "identity-keys"]
        assert "checked against pinned identities" in keys.looked_at
    assert all(entry.allowed for entry in told.ledger.entries)
    if SCORES[backend].masked_terms is not None:
        assert passed(told) >= OF_SUMS - ({"uniform-masked-values"} if backend != "masked" and least == 1 else set())
        assert all(one.vector is None and not one.problem for one in told.sums.sums)
        assert len(told.sums.sums) == 2 * (1 + (least > 1))


def test_a_dropout_accuses_nobody(tmp_path: Path) -> None:
    terms = [terms_of(0), dataclasses.replace(terms_of(1), table=b"another")]
    stage = ScoreStage(tmp_path, "masked", [Asked.of(one, b"queries") for one in terms], ACTIVE)
    stage.vanishes = (VICTIM, "masked input/")
    stage.perform(Cheat())
    assert sorted(stage.answers) == [0, 1]
    assert VICTIM not in stage.answers[1].contributors
    assert high(audited(stage)) == set()


@pytest.mark.parametrize(("backend", "step"), [("masked", "masked input/"), ("topk", "selection/")])
def test_a_batch_that_is_asked_again_or_abandoned_accuses_nobody(backend: str, step: str, tmp_path: Path) -> None:
    """With holders counted, or in a selection, a dropout costs the attempt."""
    stage = staged(tmp_path, backend, least=2)
    stage.vanishes = (VICTIM, step)
    stage.perform(Cheat())
    assert stage.crashed == []
    assert high(audited(stage)) == set()


Change = Callable[[PartyId, wire.Message], Iterable[wire.Message]]


class Changes(Cheat):
    def __init__(self, change: Change) -> None:
        super().__init__()
        self._change = change

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        return self._change(to, message)


def shifted(to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
    """A total of scores that is off by one."""
    if isinstance(message, ScoresTotal):
        return (msgspec.structs.replace(message, vector=message.vector + np.uint32(1)),)
    return (message,)


def shifted_holders(to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
    if isinstance(message, SumTotal) and message.purpose == HOLDERS:
        vector = message.vector.copy()
        vector[:1] ^= vector.dtype.type(1)
        return (msgspec.structs.replace(message, vector=vector),)
    return (message,)


def names_others(to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
    if isinstance(message, ScoresTotal | EncryptedTotal):
        return (msgspec.structs.replace(message, contributors=[2, 3, 4]),)
    return (message,)


def asked_twice(to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
    return (message, message) if isinstance(message, ScoresAsked) and to == VICTIM else (message,)


def seeds_for_all(to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
    return (DealtSeed("scores", bytes(range(32))),) if isinstance(message, DealtSeed) else (message,)


def cut_shares(to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
    if isinstance(message, SelectionRelay) and to == VICTIM and message.to_all:
        return (msgspec.structs.replace(message, to_all=dict.fromkeys(message.to_all, bytes(60))),)
    return (message,)


def withheld(to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
    """The victim hears nothing of the asking, and is dealt its seed all the same."""
    return () if isinstance(message, ScoresAsked) and to == VICTIM else (message,)


def undeclared(to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
    """A message of another backend."""
    if isinstance(message, BatchServed) and to == VICTIM:
        return (message, ClearScores("scores", np.zeros(3, dtype="<u4")))
    return (message,)


@pytest.mark.parametrize(
    ("backend", "least", "change", "finding"),
    [
        ("masked", 1, shifted, "false-score-totals"),
        ("plain", 1, shifted, "false-score-totals"),
        ("plain", 2, shifted, "false-score-totals"),
        ("masked", 2, shifted_holders, "false-score-totals"),
        ("masked", 1, names_others, "false-score-totals"),
        ("plain", 1, names_others, "false-score-totals"),
        ("masked", 1, asked_twice, "asking-repeated"),
        ("topk", 1, withheld, "asking-withheld"),
        ("topk", 1, seeds_for_all, "dealt-seed-reused"),
        ("topk", 1, seeds_for_all, "false-randomness"),
        ("topk", 1, cut_shares, "selection-relayed-otherwise"),
        ("masked", 1, undeclared, "undeclared-message"),
    ],
)
def test_what_a_server_does_otherwise_is_named(
    backend: str, least: int, change: Change, finding: str, tmp_path: Path
) -> None:
    stage = staged(tmp_path, backend, least)
    stage.perform(Changes(change))
    assert finding in high(audited(stage))


def test_seeds_that_anybody_guesses_are_named_and_what_clients_send_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that knows another one's seed reads what is shared under it. A client's word of a seed is nothing."""
    monkeypatch.setattr(DealingServer, "_draw", lambda self, terms, party: bytes(31) + bytes([party]))
    stage = staged(tmp_path, "topk", 1)
    stage.perform(Changes(lambda to, message: (message,)))
    assert {"padded-secrets", "weak-seeds"} <= high(audited(stage))
    for secret in (bytes(32), bytes(range(4)) * 8, bytes(range(8)) * 4, bytes(range(16)) * 2):
        check = Seeds(RunConfig(clients=3), 3)
        for direction, found in (("received", 0), ("sent", 1)):
            check.observe(observation(DealtSeed("scores", secret), direction))
            assert len(check.findings()) == found


def observation(message: wire.Message, direction: Any) -> Observation:
    return Observation(0, 0, direction, 1, 1, "", message, 0, b"")


@pytest.mark.long
def test_other_contributors_of_an_encrypted_total_are_named_and_the_rest_is_said_not_to_be_known(
    tmp_path: Path,
) -> None:
    pytest.importorskip("tenseal")
    stage = staged(tmp_path, "bfv")
    stage.perform(Changes(names_others))
    told = audited(stage)
    assert high(told) == {"false-score-totals", "not-as-programmed"}
    assert "encrypted-totals-not-recomputed" in {finding.id for finding in told.findings}


def test_an_asking_of_a_party_that_is_not_the_asker_is_named(tmp_path: Path) -> None:
    """In the record of an honest session the second client is said to be the asker."""
    stage = staged(tmp_path, "masked")
    stage.perform(Cheat())
    (path,) = stage.run.glob(RECORDS)
    record = read_json(path)
    record["batches"][1]["asker"] = 2
    write_json(path, record)
    told = audited(stage)
    assert {"asking-forged", "false-score-totals"} <= high(told)


class EverybodyGone(Cheat):
    """Nothing comes or gets through after the first batch."""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if isinstance(message, BatchServed):
            self.unread |= set(terms_of(0).clients)
        if self.round >= terms_of(1).round:
            raise PeerLost(f"client {to} is gone", to)
        return (message,)


@pytest.mark.parametrize("backend", ["masked", "topk"])
def test_a_server_whose_clients_are_all_gone_is_not_accused_of_what_is_missing(
    tmp_path: Path, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(score_stage, "_SECONDS", 5.0)
    stage = staged(tmp_path, backend)
    stage.perform(EverybodyGone())
    told = audited(stage)
    assert high(told) == set()
    assert "batches-missing" in {finding.id for finding in told.findings if finding.severity == "medium"}


class LosesTheTotal(Cheat):
    """The asker is lost as its total is sent."""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if isinstance(message, EncryptedTotal | ScoresTotal):
            raise PeerLost(f"client {to} is gone", to)
        return (message,)


@pytest.mark.parametrize("backend", ["masked", "bfv", "paillier"])
def test_a_total_that_did_not_get_through_accuses_nobody(tmp_path: Path, backend: str) -> None:
    stage = staged(tmp_path, backend)
    stage.perform(LosesTheTotal())
    assert high(audited(stage)) == set()


class AbandonsAtWill(TopKServer):
    """Has every batch asked again, though everybody was there."""

    def _select(self, session: ServerSession, terms: ScoreTerms, widest: ScoreTerms) -> None:
        if terms.round in {terms_of(0).round, terms_of(1).round}:
            raise SumAbandoned("1 dropped out")
        super()._select(session, terms, widest)


def test_a_batch_that_never_came_does_not_keep_the_program_from_the_others(tmp_path: Path) -> None:
    """Of `crypten` parts pass no recorded wire; a server may claim such a batch in its own record."""
    stage = staged(tmp_path, "topk")
    stage.perform(Cheat(), lambda keys: AbandonsAtWill(SecretHolderServer(keys.vectors)))
    assert high(audited(stage)) == {"not-as-programmed"}
    (path,) = stage.run.glob(RECORDS)
    record = read_json(path)
    record["batches"].insert(0, record["batches"][0] | {"backend": "crypten", "round": 30})
    write_json(path, record)
    assert "not-as-programmed" in high(audited(stage))


@pytest.mark.parametrize("backend", ["plain", "topk"])
def test_sizes_in_a_record_are_not_made_room_for(tmp_path: Path, backend: str) -> None:
    stage = staged(tmp_path, backend)
    stage.perform(Cheat())
    (path,) = stage.run.glob(RECORDS)
    record = read_json(path)
    for batch in record["batches"]:
        batch["positions"], batch["queries"] = 1 << 20, 1000
    write_json(path, record)
    tracemalloc.start()
    told = audited(stage)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert told.exit_code == 3
    assert peak < 1 << 28


@pytest.mark.parametrize(
    ("field", "value"), [("bound", 0), ("bound", 1e308), ("asker", 1 << 64), ("clients", []), ("parties", [])]
)
def test_a_record_of_an_impossible_session_gets_one_line(tmp_path: Path, field: str, value: object) -> None:
    stage = staged(tmp_path, "masked")
    stage.perform(Cheat())
    (path,) = stage.run.glob(RECORDS)
    record = read_json(path)
    (record if field == "parties" else record["batches"][0])[field] = value
    write_json(path, record)
    with pytest.raises(UserError, match="not a record of score queries"):
        open_session(stage.run)


def test_a_transcript_that_was_cut_or_written_anew_is_named(tmp_path: Path) -> None:
    stage = staged(tmp_path, "masked")
    stage.perform(Cheat())
    (transcript,) = stage.run.glob("transcript-*.bin")
    records = list(read_transcript(transcript))
    transcript.unlink()
    tap = Tap(transcript)
    for one in records:
        if one.round < terms_of(1).round:
            tap.write(one.direction, one.peer, one.round, one.phase, one.frame)
    tap.close()
    assert {"score-transcript-differs", "batches-missing"} <= high(audited(stage))
    transcript.write_bytes(transcript.read_bytes()[:-40])
    assert "score-transcript-differs" in high(audited(stage))


def test_a_session_without_an_end_is_said_to_be_one(tmp_path: Path) -> None:
    stage = staged(tmp_path, "masked")
    stage.perform(Cheat())
    (path,) = stage.run.glob(RECORDS)
    write_json(path, {**read_json(path), "transcript": None})
    told = audited(stage)
    assert "score-session-unfinished" in {finding.id for finding in told.findings if finding.severity == "medium"}


def test_the_same_queries_over_other_scorers_are_named_if_they_were_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from protocols.sums.secagg.openings import Openings

    for name in ("open", "may_come"):
        monkeypatch.setattr(Openings, name, lambda self, *given: None)
    monkeypatch.setattr(Covering, "guard", lambda self, terms, may_open: may_open)
    played = scores.without_scorer(tmp_path)
    assert played.got
    assert isinstance(played.stage, ScoreStage)
    assert {"same-sum-over-other-clients", "answers-ignored"} <= high(audited(played.stage))


def test_the_command_writes_a_page_and_a_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stage = staged(tmp_path, "masked")
    stage.perform(Cheat())
    assert main([str(stage.run), "--out", str(tmp_path / "out")]) == 0
    written = json.loads((tmp_path / "out/audit.json").read_text())
    report = ScoreReport.from_json(written, "audit.json")
    assert report.to_json() == written
    assert report.settings.backends == ["masked"]
    assert any(line.message == "ScoresTotal" and line.field_class == "masked" for line in report.ledger)
    page = (tmp_path / "out/audit.html").read_text()
    assert "score queries by masked" in page
    assert "nothing to check" in capsys.readouterr().out
    plain = staged(tmp_path / "plain", "plain")
    plain.path.mkdir()
    plain.perform(Cheat())
    assert main([str(plain.run), "--out", str(tmp_path / "out2")]) == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda record: record | {"version": 9}, "version 9"),
        (lambda record: record | {"session": "00" * 16}, "another session"),
        (lambda record: record | {"batches": [record["batches"][0] | {"positions": 0}]}, "positions of a batch: 0"),
        (lambda record: record | {"batches": [record["batches"][0] | {"backend": "nope"}]}, "nope"),
        (lambda record: record | {"adversary": "kind"}, "'kind' is not known"),
    ],
)
def test_a_record_that_is_none_gets_one_line(
    change: Callable[[dict[str, object]], dict[str, object]], said: str, tmp_path: Path
) -> None:
    stage = staged(tmp_path, "plain")
    stage.perform(Cheat())
    (path,) = stage.run.glob(RECORDS)
    ScoreSession.from_json(read_json(path), path)
    write_json(path, change(read_json(path)))
    with pytest.raises(UserError, match=said):
        open_session(stage.run)


def test_scores_and_queries_in_clear_are_not_attacked_if_queries_are_no_vectors(tmp_path: Path) -> None:
    for backend, why in (("plain", "does not say that queries are vectors"), ("masked", "neither queries nor scores")):
        stage = staged(tmp_path / backend, backend)
        stage.path.mkdir()
        stage.perform(Cheat())
        told = audited(stage)
        assert told.attacks == ()
        assert why in told.not_attacked


def test_an_asking_is_what_the_first_message_of_a_batch_is(tmp_path: Path) -> None:
    """The ledger has the asker's sealed queries as a ciphertext, and nothing of a batch in clear."""
    stage = staged(tmp_path, "masked", least=2)
    stage.perform(Cheat())
    told = audited(stage)
    classes = {(entry.kind, entry.name): entry.declared.field_class for entry in told.ledger.entries}
    assert classes[AskScores.__name__, "sealed"] == "ciphertext"
    assert classes[ScoresTotal.__name__, "vector"] == "masked"
    assert classes["(sum)", "total"] == "masked"
    assert "clear" not in classes.values()


def test_the_record_of_a_selection_is_for_its_owner_and_says_whom_not_to_give_it_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = staged(tmp_path, "topk")
    stage.perform(Cheat())
    assert [path.stat().st_mode & 0o777 for path in stage.run.glob("transcript-*.bin")] == [0o600]
    assert main([str(stage.run), "--out", str(tmp_path / "out")]) == 0
    assert "seeds of dealt randomness" in capsys.readouterr().out

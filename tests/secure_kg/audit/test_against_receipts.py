"""Receipts against transcripts: a server that hides something is found out, and an honest one is not accused.

Honest runs here have clients that vanish, dawdle, fail or are stopped, and servers that are killed and resumed.
"""

import json
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from launch.audit import main
from protocols.foundation.deadline import Deadline
from protocols.foundation.identifiers import PartyId, SessionId
from protocols.foundation.wire import Frame
from protocols.session.identities import PublicIdentity, credentials, directory_text, new_identity, parse_directory
from protocols.session.receipts import Head, Receipt, read_receipt
from protocols.transport.base import Transport
from protocols.transport.in_process import InProcessNetwork, InProcessTransport
from protocols.transport.tap import MAGIC
from secure_kg.audit.audit import Audit
from secure_kg.data.graph import ClientGraph
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server import server
from secure_kg.foundation.errors import UserError
from secure_kg.learning.kge import KgeLearner
from tests.support.audited_runs import audited, audited_config, ids, transcript_of
from tests.support.dying_clients import VICTIM, dying_after
from tests.support.federation_in_threads import Vanished, nations, run_federation

pytestmark = pytest.mark.long

HEAD = struct.Struct("<QBIIHQ")
GRACE = 1.0


@pytest.fixture(autouse=True)
def _short_setup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_SETUP_GRACE", 3.0)


def of_integrity(found: Audit, *severities: str) -> set[str]:
    (check,) = (one for one in found.checks if one.id == "transcript-integrity")
    return {one.id for one in check.findings if one.severity in severities}


def receipts_of(run: Path, number: int) -> list[Path]:
    return sorted((run / "clients" / str(number)).glob("receipt-*.jsonl"))


def receipt_of(run: Path, number: int) -> Path:
    (path,) = receipts_of(run, number)
    return path


def told_of(found: Audit, name: str) -> str:
    (finding,) = (one for one in found.findings if one.id == name)
    return "\n".join(finding.evidence)


@pytest.fixture
def copy(secagg_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(secagg_run, tmp_path / "run"))


def trainers(at: int, act: Callable[[int], None]) -> Callable[[ClientGraph, RunConfig, int], KgeLearner]:
    """Trainers that do something else in round `at`."""

    def make(graph: ClientGraph, config: RunConfig, number: int) -> KgeLearner:
        trainer = KgeLearner(graph, config.training, torch.device("cpu"), config.seed, number)
        train = trainer.train

        def other(round_id: int) -> Any:
            if round_id == at:
                act(number)
            return train(round_id)

        trainer.train = other  # type: ignore[method-assign]
        return trainer

    return make


def power_cut(number: int) -> None:
    raise UserError("power cut")


def records_of(whole: bytes) -> list[bytes]:
    records, start = [], len(MAGIC)
    while start < len(whole):
        *_, phase, frame = HEAD.unpack_from(whole, start)
        end = start + HEAD.size + phase + frame + 32
        records.append(whole[start:end])
        start = end
    return records


# --- honest runs ------------------------------------------------------------------------------------------------------


def test_every_message_of_a_whole_run_is_compared(secagg_run: Path) -> None:
    found = audited(secagg_run)
    assert of_integrity(found, "high", "medium", "low", "info") == set()
    for number in range(1, 5):
        receipt = read_receipt(receipt_of(secagg_run, number))
        assert receipt is not None
        assert receipt.final
        assert {0, 1, 2, 3} <= {mark.round for mark in receipt.marks}  # at least one in every round


@pytest.mark.parametrize("messages", [5, 12, 30])
def test_a_client_that_vanishes_accuses_nobody(tmp_path: Path, messages: int) -> None:
    config = audited_config(4, eval_every=1, checkpoint_every=1, grace=GRACE)
    run_federation(config, nations(4), tmp_path / "run", transport_of=dying_after(messages))
    found = audited(tmp_path / "run")
    assert ids(found, "high") == set()
    assert "receipt-unfinished" in ids(found, "low") or not receipts_of(tmp_path / "run", VICTIM)


@pytest.mark.parametrize("cut", [1, 40])
def test_a_client_that_is_killed_while_it_writes_accuses_nobody(copy: Path, cut: int) -> None:
    path = receipt_of(copy, 2)
    path.write_bytes(path.read_bytes()[:-cut])
    found = audited(copy)
    assert of_integrity(found, "high", "medium") == set()
    assert "client 2" in told_of(found, "receipt-unfinished")


def test_a_client_that_was_left_out_and_not_heard_again_accuses_nobody(tmp_path: Path) -> None:
    slow = trainers(3, lambda number: time.sleep(3 * GRACE) if number == VICTIM else None)
    run_federation(audited_config(4, grace=GRACE), nations(4), tmp_path / "run", trainer_of=slow)
    found = audited(tmp_path / "run")
    assert ids(found, "high") == set()
    assert "the server had left the client out" in told_of(found, "messages-not-recorded")


def test_a_client_that_could_not_be_told_that_it_was_left_out_accuses_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopped process takes no message, not even that one. It answers when it wakes, and nobody reads it."""
    asleep: set[int] = set()

    def sleep(number: int) -> None:
        if number == VICTIM:
            asleep.add(number)
            time.sleep(3 * GRACE)

    class Waking(InProcessTransport):
        def _take(self, senders: Any, deadline: Deadline) -> tuple[PartyId, Frame] | None:
            if asleep and (taken := super()._take(senders, Deadline.after(GRACE))) is None:
                raise Vanished
            return taken if asleep else super()._take(senders, deadline)

    def transport(network: InProcessNetwork, number: int) -> Transport:
        party = PartyId(number)
        return Waking(network, party, [PartyId(0)]) if number == VICTIM else network.endpoint(party)

    monkeypatch.setattr(InProcessTransport, "busy", lambda self, to: to in asleep)
    config = audited_config(4, grace=GRACE)
    run_federation(config, nations(4), tmp_path / "run", trainer_of=trainers(3, sleep), transport_of=transport)
    found = audited(tmp_path / "run")
    assert ids(found, "high") == set()
    assert "a client was missing at the end" in told_of(found, "messages-not-recorded")


@pytest.fixture(scope="module")
def broken_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first session of a run: ended by clients that fail in round 3, after a checkpoint."""
    run = tmp_path_factory.mktemp("broken") / "run"
    config = audited_config(4, rounds=4, eval_every=2, checkpoint_every=2)
    run_federation(config, nations(4), run, trainer_of=trainers(3, power_cut))
    return run


def resumed(run: Path) -> Path:
    config = audited_config(4, rounds=4, eval_every=2, checkpoint_every=2)
    run_federation(config, nations(4), run, resume=True)
    return run


def test_a_run_that_fails_and_is_resumed_accuses_nobody(broken_run: Path, tmp_path: Path) -> None:
    run = resumed(Path(shutil.copytree(broken_run, tmp_path / "run")))
    assert all(len(receipts_of(run, number)) == 2 for number in range(1, 5))
    found = audited(run)
    assert ids(found, "high", "medium") == set()
    assert "ended the session early" in told_of(found, "messages-not-recorded")


def killed_at(run: Path, records: int, *ahead: int) -> None:
    """As if server and clients had been killed: no end, no word why, and of the receipts what was written by then.

    `ahead`: clients that have received one frame each which the server has not recorded any more.
    """
    path = transcript_of(run)
    kept = records_of(path.read_bytes())[:records]
    path.write_bytes(MAGIC + b"".join(kept))
    (run / "summary.json").unlink(missing_ok=True)
    heads = [HEAD.unpack_from(record) for record in kept]
    for number in range(1, 5):
        told = sum(1 for _, direction, peer, *_ in heads if direction == 1 and peer == number)
        told += number in ahead
        receipt, lines, got = receipt_of(run, number), list[bytes](), 0
        first, *marks = receipt.read_bytes().splitlines(keepends=True)
        for line in marks:
            got += len(json.loads(line)["received"])
            if got > told:
                break
            lines.append(line)
        receipt.write_bytes(b"".join([first, *lines]))


@pytest.mark.parametrize("share", [0.1, 0.4, 0.77, 0.999])
def test_a_server_that_is_killed_anywhere_is_not_accused(copy: Path, share: float) -> None:
    killed_at(copy, int(share * len(records_of(transcript_of(copy).read_bytes()))))
    found = audited(copy)
    assert of_integrity(found, "high") == set()
    assert "transcript-unfinished" in of_integrity(found, "medium")


def test_a_server_that_is_killed_between_sending_and_recording_is_not_accused(copy: Path, tmp_path: Path) -> None:
    """That is one frame to one client; two are too many."""
    other = Path(shutil.copytree(copy, tmp_path / "other"))
    records = records_of(transcript_of(copy).read_bytes())
    goodbyes = len(records) - 1 - 4  # the goodbyes come last, in the order of the clients, before the end
    killed_at(other, goodbyes + 2, 3, 4)
    assert "transcript-differs" in of_integrity(audited(other), "high")
    killed_at(copy, goodbyes + 2, 3)
    found = audited(copy)
    assert of_integrity(found, "high") == set()
    assert "lacks 1 frame that client 3 received" in told_of(found, "messages-not-recorded")


def test_a_run_that_is_killed_and_resumed_is_not_accused(broken_run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(broken_run, tmp_path / "run"))
    killed_at(run, len(records_of(transcript_of(run).read_bytes())) - 6)
    found = audited(resumed(run))
    assert ids(found, "high") == set()
    assert "transcript-unfinished" in ids(found, "medium")


def test_a_client_that_keeps_no_receipt_is_told(copy: Path) -> None:
    receipt_of(copy, 1).unlink()
    receipt_of(copy, 2).write_bytes(b"")
    found = audited(copy)
    assert of_integrity(found, "high", "medium", "low") == set()
    told = told_of(found, "receipts-missing")
    assert "client 1 has left no sound receipt" in told
    assert "2/receipt-" in told
    shutil.rmtree(copy / "clients")
    assert "no-receipts" in ids(audited(copy), "info")


# --- servers that hide something ----------------------------------------------------------------------------------


def test_a_session_that_vanished_is_found(broken_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The server forgets the session before it resumes: its transcript, its checkpoint and its alignment."""
    run = Path(shutil.copytree(broken_run, tmp_path / "run"))
    gone = transcript_of(run).stem.removeprefix("transcript-")
    transcript_of(run).unlink()
    (run / "checkpoint.json").unlink()
    shutil.rmtree(run / "server")
    resumed(run)
    assert main([str(run), "--out", str(tmp_path / "audit")]) == 3
    record = json.loads((tmp_path / "audit" / "audit.json").read_text(encoding="utf-8"))
    (finding,) = (one for one in record["findings"] if one["id"] == "session-missing")
    assert finding["severity"] == "high"
    assert [gone in line for line in finding["evidence"]] == [True] * 4
    capsys.readouterr()
    for number in (1, 2, 4):
        shutil.rmtree(run / "clients" / str(number))
    assert "session-missing" in ids(audited(run), "high")  # one receipt is enough


def test_a_greeting_alone_is_no_session(copy: Path) -> None:
    session = SessionId(bytes(range(16)))
    receipt, party = Receipt(), PartyId(1)
    lines = [receipt.begin(Head(session, party, bytes(32)), None)]
    receipt.write("sent", PartyId(0), 0, "", b"hello")  # type: ignore[arg-type]
    receipt.write("received", PartyId(0), 0, "", b"welcome")  # type: ignore[arg-type]
    lines.append(receipt.mark(0, final=False))  # type: ignore[arg-type]
    path = copy / "clients/1" / f"receipt-{session.hex()[:8]}.jsonl"
    path.write_bytes(b"".join(lines))
    found = audited(copy)
    assert of_integrity(found, "high", "medium", "low") == set()
    assert "under other settings" in told_of(found, "session-not-recorded")
    receipt.write("sent", PartyId(0), 0, "", b"ready")  # type: ignore[arg-type]
    path.write_bytes(b"".join([*lines, receipt.mark(0, final=False)]))  # type: ignore[arg-type]
    assert "session-missing" in ids(audited(copy), "high")


@pytest.mark.parametrize("marks", [0, 1, 3])
def test_a_receipt_cut_to_its_first_marks_is_visible(copy: Path, marks: int) -> None:
    for number in range(1, 5):
        path = receipt_of(copy, number)
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[: 1 + marks]))
    found = audited(copy)
    assert of_integrity(found, "high") == set()
    assert of_integrity(found, "medium") == ({"receipt-cut"} if marks else set())
    name = "receipt-cut" if marks else "receipts-missing"
    assert all(f"client {number}" in told_of(found, name) for number in range(1, 5))


@pytest.mark.parametrize(("missing", "cut"), [(1, False), (2, False), (3, True), (4, True)])
def test_a_client_may_lose_the_mark_of_one_request_and_not_of_two(copy: Path, missing: int, cut: bool) -> None:
    """The last marks are of the goodbye, the results, the rows before them, and the last evaluation."""
    path = receipt_of(copy, 2)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-missing]))
    found = audited(copy)
    assert of_integrity(found, "high") == set()
    assert of_integrity(found, "medium", "low") == {"receipt-cut" if cut else "receipt-unfinished"}


@pytest.mark.parametrize("line", [0, 1, -1])
def test_a_receipt_of_which_one_line_was_changed_is_found(copy: Path, line: int) -> None:
    path = receipt_of(copy, 2)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line] = lines[line].replace(b"0", b"1")
    path.write_bytes(b"".join(lines))
    found = audited(copy)
    assert of_integrity(found, "high") == {"receipt-damaged"}  # and nothing follows from it for the server
    assert found.exit_code == 3


def test_a_receipt_in_another_clients_place_is_found(copy: Path) -> None:
    shutil.move(receipt_of(copy, 2), receipt_of(copy, 3))
    assert of_integrity(audited(copy), "high") == {"receipt-damaged"}


def rewritten(path: Path, lines: list[dict[str, Any]], final: bool | None = None) -> None:
    """A receipt under a chain made anew, each mark with the signature it had."""
    before = read_receipt(path)
    assert before is not None
    receipt = Receipt()
    whole = [receipt.begin(before.head, None)]
    for line in lines:
        receipt._new = {"sent": line["sent"], "received": line["received"]}
        mark = json.loads(receipt.mark(line["round"], line["final"] if final is None else final))
        whole.append(json.dumps({**mark, "signature": line["signature"]}, separators=(",", ":")).encode() + b"\n")
    path.write_bytes(b"".join(whole))


def marks_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()[1:]]


def test_a_message_that_was_replaced_or_left_out_is_found(copy: Path) -> None:
    path = receipt_of(copy, 2)
    marks = marks_of(path)
    original = path.read_bytes()
    changed = [*marks[:2], {**marks[2], "received": ["0" * 32, *marks[2]["received"][1:]]}, *marks[3:]]
    rewritten(path, changed)
    assert of_integrity(audited(copy), "high") == {"transcript-differs"}
    path.write_bytes(original)
    for way in ("sent", "received"):
        rewritten(path, [*marks[:-1], {**marks[-1], way: [*marks[-1][way], "0" * 32]}])
        assert of_integrity(audited(copy), "high") == {"transcript-differs"}
        path.write_bytes(original)
    rewritten(path, [*marks[:3], {**marks[3], "final": True}])
    assert "did not receive" in told_of(audited(copy), "transcript-differs")
    rewritten(path, marks)
    assert of_integrity(audited(copy), "high", "medium", "low") == set()


def test_messages_that_are_not_recorded_need_a_reason(copy: Path) -> None:
    """A session that was ended with a goodbye to everybody gives none."""
    path = receipt_of(copy, 2)
    marks = marks_of(path)
    sent = {**marks[-2], "sent": [*marks[-2]["sent"], "0" * 32]}
    rewritten(path, [*marks[:-2], sent], final=False)
    found = audited(copy)
    assert of_integrity(found, "high") == {"transcript-differs"}
    assert "lacks 1 frame that client 2 sent" in told_of(found, "transcript-differs")


# --- signatures -----------------------------------------------------------------------------------------------------


def test_signed_receipts_that_were_changed_are_forged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = {number: new_identity() for number in range(1, 5)}
    text = directory_text([PublicIdentity(PartyId(number), pair.public) for number, pair in pairs.items()])
    own = {number: credentials(pair.private_pem, text, number) for number, pair in pairs.items()}
    run, config = tmp_path / "run", audited_config(4, adversary="active", keys="keys")
    run_federation(config, nations(4), run, credentials=own).done()
    pinned = {client.number: bytes.fromhex(client.public) for client in parse_directory(text)}
    assert of_integrity(audited(run, pinned), "high", "medium", "low") == set()
    assert of_integrity(audited(run), "high", "medium") == {"receipts-not-verified"}
    path = receipt_of(run, 2)
    original, marks = path.read_bytes(), marks_of(path)
    edits = {
        "changed": [*marks[:2], {**marks[2], "sent": ["0" * 32, *marks[2]["sent"][1:]]}, *marks[3:]],
        "declared final": [*marks[:3], {**marks[3], "final": True}],
        "unsigned": [*marks[:-1], {**marks[-1], "signature": ""}],
    }
    for lines in edits.values():
        rewritten(path, lines)
        assert of_integrity(audited(run, pinned), "high") == {"receipt-forged"}
        path.write_bytes(original)
    path.write_bytes(b"".join(original.splitlines(keepends=True)[:3]))
    assert of_integrity(audited(run, pinned), "high", "medium", "low") == {"receipt-cut"}
    rewritten(path, edits["changed"])
    (tmp_path / "directory.toml").write_text(text, encoding="utf-8")
    arguments = [str(run), "--out", str(tmp_path / "audit"), "--keys", str(tmp_path / "directory.toml")]
    assert main(arguments) == 3
    assert "not signed by their clients" in capsys.readouterr().out

"""A transcript that was damaged, cut, reordered or replaced is reported, and never a traceback."""

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from protocols.transport.tap import MAGIC
from secure_kg.audit.view.read import Recording, open_run
from secure_kg.federation.plan.messages import Verdict
from secure_kg.foundation.errors import UserError
from tests.support.audited_runs import audited, edited, ids, observed, replacing, transcript_of, with_fields

pytestmark = pytest.mark.long

HEAD = struct.Struct("<QBIIHQ")


def parts_of(whole: bytes) -> list[bytes]:
    parts, start = [], len(MAGIC)
    while start < len(whole):
        *_, phase, frame = HEAD.unpack_from(whole, start)
        end = start + HEAD.size + phase + frame + 32
        parts.append(whole[start:end])
        start = end
    return parts


def flipped(whole: bytes) -> bytes:
    middle = len(whole) // 2
    return whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]


def reordered(whole: bytes) -> bytes:
    parts = parts_of(whole)
    parts[10], parts[11] = parts[11], parts[10]
    return MAGIC + b"".join(parts)


def one_left_out(whole: bytes) -> bytes:
    parts = parts_of(whole)
    return MAGIC + b"".join(parts[:20] + parts[21:])


def one_repeated(whole: bytes) -> bytes:
    parts = parts_of(whole)
    return MAGIC + b"".join(parts[:20] + parts[19:])


@pytest.fixture
def copy(secagg_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(secagg_run, tmp_path / "run"))


@pytest.mark.parametrize(
    "damage",
    [
        flipped,
        reordered,
        one_left_out,
        one_repeated,
        lambda whole: whole + b"more than fits into the head of a record",
        lambda whole: b"no transcript at all",
        lambda whole: whole[: len(MAGIC) - 1] + b"\x01" + whole[len(MAGIC) :],
    ],
    ids=["bit", "order", "left out", "repeated", "longer", "other", "version"],
)
def test_damage_is_reported_and_the_rest_is_audited(copy: Path, damage: Callable[[bytes], bytes]) -> None:
    path = transcript_of(copy)
    path.write_bytes(damage(path.read_bytes()))
    found = audited(copy)
    assert "transcript-damaged" in ids(found, "high")
    assert found.exit_code == 3


@pytest.mark.parametrize(
    "cut",
    [lambda whole: whole[:-1], lambda whole: whole[: len(whole) // 2], lambda whole: whole[:9], lambda whole: b""],
    ids=["by a byte", "halved", "in its first word", "empty"],
)
def test_a_transcript_cut_within_a_record_differs_from_what_the_run_says(
    copy: Path, cut: Callable[[bytes], bytes]
) -> None:
    """Without the run's word it would be that of a server which was killed while it wrote."""
    path = transcript_of(copy)
    path.write_bytes(cut(path.read_bytes()))
    found = audited(copy)
    assert {"transcript-differs", "transcript-unfinished"} <= ids(found, "high")


@pytest.mark.parametrize("lost", [1, 2, 5])
def test_a_transcript_cut_between_records_differs_from_what_the_run_says(copy: Path, lost: int) -> None:
    path = transcript_of(copy)
    path.write_bytes(MAGIC + b"".join(parts_of(path.read_bytes())[:-lost]))
    found = audited(copy)
    assert {"transcript-differs", "transcript-unfinished"} <= ids(found, "high")


def test_a_job_that_was_ended_by_force_leaves_a_transcript_without_an_end(copy: Path) -> None:
    path = transcript_of(copy)
    path.write_bytes(MAGIC + b"".join(parts_of(path.read_bytes())[:-1]))
    (copy / "summary.json").unlink()
    found = audited(copy)
    assert ids(found, "high", "medium") == {"transcript-unfinished"}
    assert found.exit_code == 0


def test_a_transcript_made_for_the_auditor_differs_from_the_clients_receipts(secagg_run: Path, tmp_path: Path) -> None:
    changed = replacing(
        lambda one: isinstance(one.message, Verdict) and one.peer == 2,
        lambda one: with_fields(one.message, improved=not one.message.improved),  # type: ignore[attr-defined]
    )
    run = edited(secagg_run, tmp_path / "run", changed)
    assert "transcript-differs" not in ids(audited(run))  # nobody has anything to compare it with
    for number in range(1, 5):
        (receipt,) = (secagg_run / "clients" / str(number)).glob("receipt-*.jsonl")
        shutil.copy(receipt, run / "clients" / str(number))
    found = audited(run)
    assert "transcript-differs" in ids(found, "high")
    assert any("client 2" in line for one in found.findings for line in one.evidence)


def test_messages_that_a_client_never_sent_are_found(secagg_run: Path, tmp_path: Path) -> None:
    run = edited(secagg_run, tmp_path / "run", lambda observations: [*observations, *list(observations)[-3:]])
    for number in range(1, 5):
        (receipt,) = (secagg_run / "clients" / str(number)).glob("receipt-*.jsonl")
        shutil.copy(receipt, run / "clients" / str(number))
    shutil.copy(secagg_run / "summary.json", run)
    assert "transcript-differs" in ids(audited(run), "high")


@pytest.mark.parametrize("kept", [12, 60, 200])
def test_what_a_client_received_and_the_transcript_lacks_is_found(secagg_run: Path, tmp_path: Path, kept: int) -> None:
    run = edited(secagg_run, tmp_path / "run", lambda observations: list(observations)[:kept])
    for number in range(1, 5):
        (receipt,) = (secagg_run / "clients" / str(number)).glob("receipt-*.jsonl")
        shutil.copy(receipt, run / "clients" / str(number))
    found = audited(run)
    assert "transcript-differs" in ids(found, "high")
    assert "messages-not-recorded" in ids(found, "medium")


def test_reading_can_be_repeated_and_tells_the_session(secagg_run: Path) -> None:
    recording = Recording(transcript_of(secagg_run))
    assert [one.index for one in recording] == list(range(len(observed(secagg_run))))
    assert recording.damage is None
    assert recording.seal is not None
    assert recording.session is not None
    assert recording.session.hex()[:8] in recording.path.name


def test_what_is_no_run_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such run folder"):
        open_run(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"no config\.toml"):
        open_run(tmp_path)


def test_settings_that_are_no_text_are_told_in_one_line(copy: Path) -> None:
    (copy / "config.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="not a text file"):
        open_run(copy)


def test_a_run_without_a_transcript_is_told_how_to_get_one(copy: Path) -> None:
    transcript_of(copy).unlink()
    with pytest.raises(UserError, match="--transcript"):
        open_run(copy)

"""A client's receipt on the disk: when it is made, that it only grows, and what a disk that fails does to it."""

from pathlib import Path

import pytest

from protocols.foundation.errors import DecodeError
from protocols.foundation.identifiers import SERVER, PartyId, RoundId, SessionId
from protocols.session.receipts import Head, read_receipt
from secure_kg.foundation.errors import UserError
from secure_kg.runs.recording import ReceiptKeeper, receipt_path

HEAD = Head(SessionId(bytes(range(16))), PartyId(1), bytes(32))
ROUND = RoundId(1)


def opened(folder: Path, received: int) -> ReceiptKeeper:
    keeper = ReceiptKeeper()
    keeper.open(folder, HEAD, None)
    pass_frames(keeper, received)
    return keeper


def pass_frames(keeper: ReceiptKeeper, count: int) -> None:
    for _ in range(count):
        keeper.write("received", SERVER, ROUND, "", b"frame")


def test_a_session_that_ends_with_its_greeting_leaves_no_file(tmp_path: Path) -> None:
    keeper = opened(tmp_path / "own", 2)
    keeper.keep(ROUND)
    keeper.stop(ROUND)
    assert not (tmp_path / "own").exists()


def test_it_only_grows_and_nobody_else_may_read_it(tmp_path: Path) -> None:
    keeper, path = opened(tmp_path / "own", 3), receipt_path(tmp_path / "own", HEAD.session)
    keeper.keep(ROUND)
    before = path.read_bytes()
    assert path.stat().st_mode & 0o077 == 0
    pass_frames(keeper, 1)
    keeper.stop(ROUND)
    assert path.read_bytes().startswith(before)
    keeper.keep(ROUND, final=True)
    pass_frames(keeper, 1)
    keeper.stop(ROUND)  # what passes after the end is not in it
    receipt = read_receipt(path)
    assert receipt is not None
    assert receipt.final
    assert len(receipt.received) == 4
    assert len(receipt.marks) == 3


def test_two_sessions_of_one_name_do_not_share_a_receipt(tmp_path: Path) -> None:
    opened(tmp_path, 3).keep(ROUND)
    before = receipt_path(tmp_path, HEAD.session).read_bytes()
    second = opened(tmp_path, 3)
    with pytest.raises(UserError, match="cannot be written"):
        second.keep(ROUND)
    second.stop(ROUND)
    assert receipt_path(tmp_path, HEAD.session).read_bytes() == before


def test_after_a_line_that_could_not_be_written_there_is_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from secure_kg.runs import recording

    keeper, path = opened(tmp_path, 3), receipt_path(tmp_path, HEAD.session)
    keeper.keep(ROUND)
    write = recording.os.write
    room = [10]

    def full(file: int, content: bytes) -> int:
        if not room[0]:
            raise OSError(28, "No space left on device")
        written = write(file, content[: room[0]])
        room[0] -= written
        return written

    pass_frames(keeper, 1)
    monkeypatch.setattr(recording.os, "write", full)
    with pytest.raises(UserError, match="No space left"):
        keeper.keep(ROUND)
    monkeypatch.undo()
    pass_frames(keeper, 1)
    keeper.stop(ROUND)
    try:
        receipt = read_receipt(path)
    except DecodeError as problem:
        pytest.fail(str(problem))
    assert receipt is not None
    assert len(receipt.received) == 3
    assert not path.read_bytes().endswith(b"\n")

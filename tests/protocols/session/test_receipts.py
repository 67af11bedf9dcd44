"""Receipts: what is written is read back, and whatever was changed is refused in one line."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import DecodeError, PeerMisbehaved
from protocols.foundation.identifiers import SERVER, PartyId, RoundId, SessionId
from protocols.session.identities import PublicIdentity, credentials, directory_text, new_identity
from protocols.session.receipts import Head, KeptReceipt, Receipt, Sign, read_receipt
from protocols.transport.in_process import InProcessNetwork
from protocols.transport.tap import frame_hash

ONE, PAST = PartyId(1), Deadline(0.0)
HEAD = Head(SessionId(bytes(range(16))), ONE, bytes(32))


def lines_of(sign: Sign | None = None, head: Head = HEAD) -> list[bytes]:
    """A head and three marks, the last one final."""
    receipt = Receipt()
    lines = [receipt.begin(head, sign)]
    for number in range(3):
        receipt.write("sent", SERVER, RoundId(number), "", b"sent %d" % number)
        receipt.write("received", SERVER, RoundId(number), "", b"received %d" % number)
        lines.append(receipt.mark(RoundId(number), final=number == 2))
    return lines


def kept(path: Path, lines: list[bytes]) -> KeptReceipt:
    path.write_bytes(b"".join(lines))
    read = read_receipt(path)
    assert read is not None
    return read


def test_a_receipt_holds_the_hashes_of_what_passed_in_order(tmp_path: Path) -> None:
    network, receipt = InProcessNetwork(1), Receipt()
    server, client = network.endpoint(SERVER), network.endpoint(ONE)
    client.attach(receipt)
    lines = [receipt.begin(HEAD, None)]
    for frame in (b"one", b"two"):
        client.send(SERVER, frame)
        server.receive([ONE], PAST)
        server.send(ONE, memoryview(frame * 2))
        client.receive([SERVER], PAST)
        lines.append(receipt.mark(RoundId(1), final=False))
    assert receipt.mark(RoundId(1), final=False) == b""  # nothing has passed since
    lines.append(receipt.mark(RoundId(2), final=True))
    read = kept(tmp_path / "receipt", lines)
    assert read.head == HEAD
    assert read.sent == (frame_hash(b"one"), frame_hash(b"two"))
    assert read.received == (frame_hash(b"oneone"), frame_hash(b"twotwo"))
    assert [mark.round for mark in read.marks] == [1, 1, 2]
    assert read.final
    assert receipt.passed == {"sent": 2, "received": 2}


def test_the_links_are_those_of_the_documented_format() -> None:
    head, first, *_ = lines_of()
    mark = json.loads(first)
    content = first[: first.index(b',"link"')] + b"}"
    before = hashlib.sha256(head.rstrip(b"\n")).digest()
    assert mark["link"] == hashlib.sha256(before + content).hexdigest()


@pytest.mark.parametrize("whole", [1, 2, 3])
def test_a_line_that_a_crash_has_cut_was_never_made(tmp_path: Path, whole: int) -> None:
    lines = lines_of()
    for cut in (1, 10, len(lines[whole]) - 1):
        read = kept(tmp_path / "receipt", [*lines[:whole], lines[whole][:cut]])
        assert len(read.marks) == whole - 1
        assert not read.final


@pytest.mark.parametrize("content", [b"", b'{"version":2,"sess'])
def test_one_without_a_whole_head_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "receipt").write_bytes(content)
    assert read_receipt(tmp_path / "receipt") is None


def changed(line: bytes, **fields: object) -> bytes:
    return json.dumps({**json.loads(line), **fields}, separators=(",", ":")).encode() + b"\n"


DAMAGE: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "a hash": lambda lines: [*lines[:2], changed(lines[2], sent=["0" * 32]), lines[3]],
    "the last hash": lambda lines: [*lines[:3], changed(lines[3], received=["0" * 32])],
    "the head": lambda lines: [changed(lines[0], client=2), *lines[1:]],
    "final": lambda lines: [*lines[:2], changed(lines[2], final=True)],
    "round": lambda lines: [*lines[:2], changed(lines[2], round=7)],
    "left out": lambda lines: [lines[0], *lines[2:]],
    "order": lambda lines: [lines[0], lines[2], lines[1], lines[3]],
    "twice": lambda lines: [*lines, lines[3]],
    "after its end": lambda lines: [*lines, b'{"round":3}\n'],
    "no head": lambda lines: lines[1:],
    "blank line": lambda lines: [lines[0], b"\n", *lines[1:]],
    "a field more": lambda lines: [lines[0], changed(lines[1], more=1)],
    "no number": lambda lines: [lines[0], changed(lines[1], round="1")],
    "negative": lambda lines: [lines[0], changed(lines[1], round=-1)],
    "no hash": lambda lines: [lines[0], changed(lines[1], sent=["zz"])],
    "spaces": lambda lines: [lines[0], json.dumps(json.loads(lines[1])).encode() + b"\n"],
    "version": lambda lines: [changed(lines[0], version=1), *lines[1:]],
    "no text": lambda lines: [b"\xff\xfe\n"],
    "deep": lambda lines: [lines[0], b"[" * 100_000 + b"\n"],
    "a list": lambda lines: [b"[]\n"],
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_whatever_was_changed_is_refused(tmp_path: Path, damage: Callable[[list[bytes]], list[bytes]]) -> None:
    lines = lines_of()
    kept(tmp_path / "receipt", lines)
    (tmp_path / "receipt").write_bytes(b"".join(damage(lines)))
    with pytest.raises(DecodeError, match=r"^line \d") as caught:
        read_receipt(tmp_path / "receipt")
    assert "\n" not in str(caught.value)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DecodeError):
        read_receipt(tmp_path)


def test_signatures_are_those_of_the_client_on_this_session_and_chain(tmp_path: Path) -> None:
    pairs = {number: new_identity() for number in (1, 2)}
    text = directory_text([PublicIdentity(PartyId(number), pair.public) for number, pair in pairs.items()])
    own = {number: credentials(pair.private_pem, text, number) for number, pair in pairs.items()}
    directory, path = own[1].directory, tmp_path / "receipt"
    kept(path, lines_of(own[1].sign)).check_signatures(directory)
    kept(path, lines_of(own[1].sign)[:2]).check_signatures(directory)
    with pytest.raises(PeerMisbehaved, match=r"mark 1 is not signed$"):
        kept(path, lines_of()).check_signatures(directory)
    with pytest.raises(PeerMisbehaved, match="mark 1 is not signed by client 1"):
        kept(path, lines_of(own[2].sign)).check_signatures(directory)
    # A chain that was made anew fits, and the old signatures do not.
    theirs = [json.loads(line) for line in lines_of(own[1].sign)[1:]]
    other = lines_of(head=Head(SessionId(bytes(16)), ONE, bytes(32)))
    moved = [
        other[0],
        *(changed(line, signature=old["signature"]) for line, old in zip(other[1:], theirs, strict=True)),
    ]
    with pytest.raises(PeerMisbehaved, match="mark 1 is not signed by client 1"):
        kept(path, moved).check_signatures(directory)

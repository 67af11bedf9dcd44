"""Transcripts hold exactly what passed, in order; a damaged file is reported and never guessed."""

import struct
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import DecodeError
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.transport.in_process import InProcessNetwork
from protocols.transport.tap import MAGIC, Tap, Transcript, TranscriptRecord, read_transcript
from tests.support.vectors import unhex, vectors

ONE, TWO = PartyId(1), PartyId(2)
PAST = Deadline(0.0)
OWN = vectors("transcript")
HEAD = struct.Struct("<QBIIHQ")
LINK = 32


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "written"
    path.write_bytes(unhex(OWN["file"]))
    return path


def test_the_format_is_the_one_written_down(written: Path) -> None:
    expected = [
        TranscriptRecord(
            case["time_ns"], case["direction"], case["peer"], case["round"], case["phase"], unhex(case["frame"])
        )
        for case in OWN["records"]
    ]
    assert list(read_transcript(written)) == expected


def test_a_tap_writes_that_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([*(case["time_ns"] for case in OWN["records"]), OWN["end_time_ns"]])
    monkeypatch.setattr("time.time_ns", lambda: next(times))
    tap = Tap(tmp_path / "tapped")
    for case in OWN["records"]:
        tap.write(case["direction"], case["peer"], case["round"], case["phase"], unhex(case["frame"]))
    seal = tap.seal()
    tap.close()
    assert (tmp_path / "tapped").read_bytes().hex() == OWN["file"]
    assert (seal.records, seal.link.hex()) == (2, OWN["last_link"])
    transcript = Transcript(tmp_path / "tapped")
    assert len(list(transcript)) == 2
    assert transcript.seal == seal


events = st.lists(
    st.tuples(
        st.booleans(),
        st.sampled_from([ONE, TWO]),
        st.integers(0, 2**32 - 1).map(RoundId),
        st.text(max_size=10),
        st.binary(max_size=30),
    ),
    max_size=10,
)


@given(events)
@settings(deadline=None, max_examples=50)
def test_a_transcript_is_what_was_sent_and_received_in_order(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[bool, PartyId, RoundId, str, bytes]]
) -> None:
    folder = tmp_path_factory.mktemp("taps")
    network = InProcessNetwork(2)
    server = network.endpoint(SERVER)
    clients = {party: network.endpoint(party) for party in (ONE, TWO)}
    server.attach(Tap(folder / "server"))
    for party, client in clients.items():
        client.attach(Tap(folder / f"client {party}"))
    for down, party, round_id, phase, frame in drawn:
        with server.phase(round_id, phase), clients[party].phase(round_id, phase):
            if down:
                server.send(party, frame)
                clients[party].receive([SERVER], PAST)
            else:
                clients[party].send(SERVER, memoryview(frame))
                server.receive([party], PAST)
    for transport in (server, *clients.values()):
        transport.close()

    def seen(name: str) -> list[tuple[str, int, int, str, bytes]]:
        return [(r.direction, r.peer, r.round, r.phase, r.frame) for r in read_transcript(folder / name)]

    assert seen("server") == [
        ("sent" if down else "received", party, round_id, phase, frame) for down, party, round_id, phase, frame in drawn
    ]
    for own in (ONE, TWO):
        assert seen(f"client {own}") == [
            ("received" if down else "sent", SERVER, round_id, phase, frame)
            for down, party, round_id, phase, frame in drawn
            if party == own
        ]


def test_only_what_came_after_the_tap_is_recorded_and_closing_twice_is_no_error(tmp_path: Path) -> None:
    transport = InProcessNetwork(1).endpoint(SERVER)
    transport.send(ONE, b"before")
    transport.attach(Tap(tmp_path / "tapped"))
    transport.send(ONE, b"after")
    transport.close()
    transport.close()
    assert [record.frame for record in read_transcript(tmp_path / "tapped")] == [b"after"]


def test_records_can_be_read_while_the_tap_is_open(tmp_path: Path) -> None:
    with InProcessNetwork(1).endpoint(SERVER) as transport:
        transport.attach(Tap(tmp_path / "tapped"))
        transport.send(ONE, b"first")
        assert [record.frame for record in read_transcript(tmp_path / "tapped")] == [b"first"]


def test_a_transcript_is_never_overwritten(written: Path) -> None:
    with pytest.raises(FileExistsError):
        Tap(written)
    assert written.read_bytes() == unhex(OWN["file"])


def test_records_do_not_show_frames() -> None:
    record = TranscriptRecord(0, "sent", ONE, RoundId(0), "setup", b"visible?")
    assert "visible" not in repr(record)


# --- damage ---------------------------------------------------------------------------------------------------------


def parts_of(whole: bytes) -> list[bytes]:
    """The records of a file, each with its link; the last one is its end."""
    parts, start = [], len(MAGIC)
    while start < len(whole):
        *_, phase, frame = HEAD.unpack_from(whole, start)
        end = start + HEAD.size + phase + frame + LINK
        parts.append(whole[start:end])
        start = end
    return parts


def test_a_file_cut_between_records_has_no_seal_and_any_other_cut_is_reported(written: Path) -> None:
    whole = written.read_bytes()
    records, parts = list(read_transcript(written)), parts_of(written.read_bytes())
    ends = [len(MAGIC) + sum(map(len, parts[:count])) for count in range(len(parts) + 1)]
    assert ends[-1] == len(whole)
    for end in range(len(whole)):
        written.write_bytes(whole[:end])
        transcript = Transcript(written)
        if end in ends:
            assert list(transcript) == records[: ends.index(end)]
        else:
            with pytest.raises(DecodeError):
                list(transcript)
        assert transcript.seal is None


def test_every_flipped_bit_is_reported(written: Path) -> None:
    whole = written.read_bytes()
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << (bit % 8)
        written.write_bytes(damaged)
        with pytest.raises(DecodeError):
            list(read_transcript(written))


@pytest.mark.parametrize(
    "order", [(1, 0, 2), (1, 2), (0, 2), (2,), (0, 0, 1, 2), (0, 1, 1, 2), (0, 1, 2, 2), (0, 1, 2, 0)], ids=str
)
def test_records_left_out_repeated_or_in_another_order_are_reported(written: Path, order: tuple[int, ...]) -> None:
    parts = parts_of(written.read_bytes())
    written.write_bytes(MAGIC + b"".join(parts[index] for index in order))
    with pytest.raises(DecodeError):
        list(read_transcript(written))


def record(direction: int = 0, phase: bytes = b"setup", frame: bytes = b"frame", claimed: int | None = None) -> bytes:
    """With a link that fits it as the first record of a file."""
    size = len(frame) if claimed is None else claimed
    content = HEAD.pack(1, direction, 1, 0, len(phase), size) + phase + frame
    return content + sha256(sha256(MAGIC).digest() + content).digest()


@pytest.mark.parametrize(
    "contents",
    [
        b"",
        MAGIC[:-1] + b"\x01" + record(),
        MAGIC[:-1] + b"\x03" + record(),
        b"something else entirely",
        MAGIC + record(direction=3),
        MAGIC + record(direction=255),
        MAGIC + record(phase=b"\xff"),
        MAGIC + record(claimed=6),
        MAGIC + record(claimed=2**30 + 1),
        MAGIC + record(claimed=2**64 - 1),
        MAGIC + record() + b"\x00",
    ],
    ids=["empty", "v1", "v3", "other file", "direction", "direction 255", "phase", "short", "limit", "huge", "tail"],
)
def test_what_is_no_transcript_is_reported(tmp_path: Path, contents: bytes) -> None:
    path = tmp_path / "garbled"
    path.write_bytes(contents)
    with pytest.raises(DecodeError, match="garbled"):
        list(read_transcript(path))


def test_a_good_record_before_the_damage_is_read(tmp_path: Path) -> None:
    path = tmp_path / "garbled"
    path.write_bytes(MAGIC + record() + record(direction=3))
    reading = read_transcript(path)
    assert next(reading).frame == b"frame"
    with pytest.raises(DecodeError):
        next(reading)

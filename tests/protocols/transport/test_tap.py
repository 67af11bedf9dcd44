"""Transcripts hold exactly what passed, in order; a damaged file is reported and never guessed."""

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vectors import unhex, vectors

from protocols.errors import DecodeError
from protocols.identifiers import SERVER, PartyId, RoundId
from protocols.transport.deadline import Deadline
from protocols.transport.in_process import InProcessNetwork
from protocols.transport.tap import MAGIC, Tap, TranscriptRecord, read_transcript

ONE, TWO = PartyId(1), PartyId(2)
PAST = Deadline(0.0)
OWN = vectors("transcript")
HEAD = struct.Struct("<QBIIHQ")


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
    times = iter([case["time_ns"] for case in OWN["records"]])
    monkeypatch.setattr("time.time_ns", lambda: next(times))
    tap = Tap(tmp_path / "tapped")
    for case in OWN["records"]:
        tap.write(case["direction"], case["peer"], case["round"], case["phase"], unhex(case["frame"]))
    tap.close()
    assert (tmp_path / "tapped").read_bytes().hex() == OWN["file"]


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


def test_every_truncation_ends_between_records_or_is_reported(written: Path) -> None:
    whole = written.read_bytes()
    records = list(read_transcript(written))
    ends = [len(MAGIC)]
    for record in records:
        ends.append(ends[-1] + HEAD.size + len(record.phase.encode()) + len(record.frame))
    assert ends[-1] == len(whole)
    for end in range(len(whole)):
        written.write_bytes(whole[:end])
        if end in ends:
            assert list(read_transcript(written)) == records[: ends.index(end)]
        else:
            with pytest.raises(DecodeError):
                list(read_transcript(written))


def test_every_flipped_bit_is_reported_or_stays_inside_its_record(written: Path) -> None:
    whole = written.read_bytes()
    reported = 0
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << (bit % 8)
        written.write_bytes(damaged)
        try:
            records = list(read_transcript(written))
        except DecodeError:
            reported += 1
            continue
        assert bit >= 8 * len(MAGIC)
        assert len(records) == 2
    assert reported > 8 * len(MAGIC)


def record(direction: int = 0, phase: bytes = b"setup", frame: bytes = b"frame", claimed: int | None = None) -> bytes:
    size = len(frame) if claimed is None else claimed
    return HEAD.pack(1, direction, 1, 0, len(phase), size) + phase + frame


@pytest.mark.parametrize(
    "contents",
    [
        b"",
        MAGIC[:-1] + b"\x02" + record(),
        b"something else entirely",
        MAGIC + record(direction=2),
        MAGIC + record(direction=255),
        MAGIC + record(phase=b"\xff"),
        MAGIC + record(claimed=6),
        MAGIC + record(claimed=2**30 + 1),
        MAGIC + record(claimed=2**64 - 1),
        MAGIC + record() + b"\x00",
    ],
    ids=["empty", "version", "other file", "direction", "direction 255", "phase", "short", "limit", "huge", "tail"],
)
def test_what_is_no_transcript_is_reported(tmp_path: Path, contents: bytes) -> None:
    path = tmp_path / "garbled"
    path.write_bytes(contents)
    with pytest.raises(DecodeError, match="garbled"):
        list(read_transcript(path))


def test_a_good_record_before_the_damage_is_read(tmp_path: Path) -> None:
    path = tmp_path / "garbled"
    path.write_bytes(MAGIC + record() + record(direction=2))
    reading = read_transcript(path)
    assert next(reading).frame == b"frame"
    with pytest.raises(DecodeError):
        next(reading)

"""Disks that are full: one line at the party whose disk it is; the others wait as for one that has died, and go on."""

import dataclasses
import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from protocols.foundation.identifiers import PartyId, RoundId
from protocols.transport.tap import Tap
from secure_kg.federation.client.take_part import Participation
from secure_kg.foundation.errors import InternalError, StorageError
from secure_kg.runs.records.client_result import Evaluation
from secure_kg.runs.run_folder import append_line, read_lines
from tests.launch.test_serve_and_join import SETTINGS, compared, figures
from tests.support.members_in_threads import MembersInThreads
from tests.support.organisations import Organisations, ended_well
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(120)
FULL = "No space left on device"


class Disk:
    """A folder on a disk that has no room for checkpoints as long as it is `full`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder, self.full, self._fsync = f"{folder}/", True, os.fsync
        monkeypatch.setattr(os, "fsync", self._forced)

    def _forced(self, file: int) -> None:
        name = os.readlink(f"/proc/self/fd/{file}")
        if self.full and name.startswith(self._folder) and "checkpoint" in name:
            raise OSError(errno.ENOSPC, FULL)
        self._fsync(file)


@pytest.fixture
def place(tmp_path: Path) -> Organisations:
    return Organisations.found(tmp_path, dataclasses.replace(SETTINGS, rounds=12))


def test_members_wait_for_a_server_whose_disk_is_full(place: Organisations, monkeypatch: pytest.MonkeyPatch) -> None:
    run, disk = MembersInThreads(place), Disk(place.run, monkeypatch)
    server, members = run.serve(), [run.join(number) for number in (1, 2, 3)]
    with pytest.raises(StorageError, match=rf"{place.run}.* cannot be written \({FULL}\)"):
        server.result()
    wait_until(lambda: all(len(one.said) > 1 for one in members))
    for member in members:  # one that was about to say something hears that its link has ended, and not why
        assert any(words in member.said[-1] for words in ("the server cannot write its files", "has ended the session"))
        assert member.thread.is_alive()
    disk.full = False
    assert run.serve().result().complete
    assert {member.result() for member in members} == {Participation.ALL_PRESENT}
    assert figures(place.summary()) == figures(compared(place))


def test_a_member_whose_disk_is_full_is_a_dropout_until_there_is_room(
    place: Organisations, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, disk = MembersInThreads(place), Disk(place.path / "runs2", monkeypatch)
    server, others = run.serve(), [run.join(number) for number in (1, 3)]
    with pytest.raises(StorageError, match=rf"{place.path}/runs2.* cannot be written \({FULL}\)"):
        run.join(2).result()
    disk.full = False
    again = run.join(2)
    assert server.result().complete
    assert {member.result() for member in (*others, again)} == {Participation.ALL_PRESENT}
    assert not any(str(place.path) in line for line in server.said)  # where a member keeps its files is its own affair


def test_half_a_line_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, record = tmp_path / "lines.jsonl", Evaluation(round=1, figures={})
    append_line(lines, record)
    with pytest.raises(StorageError, match=FULL):
        append_line(Path("/dev/full"), record)
    assert len(read_lines(lines, Evaluation)) == 1


def test_a_record_that_the_disk_does_not_take_is_the_last_one(tmp_path: Path) -> None:
    tap = Tap(tmp_path / "transcript.bin")
    tap._file.close()
    tap._file = open("/dev/full", "wb")  # type: ignore[assignment]  # noqa: SIM115
    with pytest.raises(OSError, match=FULL):
        tap.write("sent", PartyId(1), RoundId(1), "round", b"frame")
    tap.write("sent", PartyId(1), RoundId(1), "round", b"frame")
    tap.close()


def test_a_fault_whose_details_cannot_be_written_is_a_line_all_the_same() -> None:
    fault = InternalError.recorded(ValueError("x"), Path("/dev/full"))
    assert str(fault) == f"internal error (ValueError); the details could not be written to /dev/full ({FULL})"


def fill(path: Path) -> None:
    """All that is left, with a file of somebody else's."""
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[None]:
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a small disk takes root")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("whose", ["server", "member"])
def test_commands_on_a_disk_that_fills_up(tmp_path: Path, whose: str) -> None:
    settings = dataclasses.replace(SETTINGS, rounds=400, checkpoint_every=20, eval_every=20, patience=100)
    place = Organisations.found(tmp_path / "usual", settings)
    ended_well([place.serve(), *(place.join(number) for number in (1, 2, 3))])
    usual = place.summary()
    place = Organisations.found(tmp_path / "full", settings)
    folder = place.path / ("disk" if whose == "server" else "runs2")
    with small_disk(folder, 4096):
        if whose == "server":
            place.run = folder / "run"
        server, members = place.serve(), [place.join(number) for number in (1, 2, 3)]
        server.wait_to_say("round   20/400")
        filler = folder / "filler"
        fill(filler)
        full = server if whose == "server" else members[1]
        assert full.code() == 2, full.text
        (line,) = [line for line in full.text.splitlines() if FULL in line]
        assert "make room, and the same command goes on" in line
        assert "Traceback" not in full.text
        filler.unlink()
        again = place.serve() if whose == "server" else place.join(2)
        ended_well([again, *(one for one in (server, *members) if one is not full)])
        summary = place.summary()
    if whose == "server":
        assert figures(summary) == figures(usual)
        assert summary["dropouts"] == []
    else:
        assert [(one["client"], one["returned"] is not None) for one in summary["dropouts"]] == [(2, True)]
        assert summary["rounds"] == usual["rounds"]

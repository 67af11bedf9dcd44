"""Run folders and checkpoints: never written over, never half written, never unpickled."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from protocols.foundation.identifiers import PartyId, RoundId
from protocols.sums.secagg.openings import Opening
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.runs import checkpoint
from secure_kg.runs.client_folder import (
    OpeningsFile,
    append_opening,
    open_folder,
    read_openings,
    run_id,
    state_key,
)
from secure_kg.runs.records.client_result import Evaluation
from secure_kg.runs.run_folder import (
    RunFolder,
    discard_late_files,
    locked,
    new_folders,
    read_config,
    read_json,
    write_json,
    write_whole,
)


def test_a_folder_is_not_written_over(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "a" / "b", RunConfig())
    assert read_config(tmp_path / "a" / "b") == RunConfig()
    RunFolder.create(tmp_path / "a" / "b", RunConfig())  # nothing has happened there yet
    (tmp_path / "a" / "b" / "metrics.jsonl").touch()
    with pytest.raises(UserError, match="exists already"):
        RunFolder.create(tmp_path / "a" / "b", RunConfig())
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="file"):
        RunFolder.create(tmp_path / "file" / "below", RunConfig())


def test_two_jobs_do_not_share_a_folder(tmp_path: Path) -> None:
    with (
        locked(tmp_path),
        pytest.raises(UserError, match="another job is running in this folder"),
        locked(tmp_path),
    ):
        pass
    with locked(tmp_path):
        pass


def test_a_folder_that_was_only_begun_can_be_used_again(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run", RunConfig())
    open_folder(folder.client(2), process=17, resume=False)
    assert (folder.client(2).stat().st_mode & 0o777) == 0o700
    RunFolder.create(tmp_path / "run", RunConfig())
    open_folder(folder.client(2), process=18, resume=False)
    folder.discard_if_unused()
    assert not folder.path.exists()


def test_a_client_does_not_write_over_its_own_older_files(tmp_path: Path) -> None:
    """A server that names an old run must not make a client overwrite it."""
    write_whole(tmp_path / "model.safetensors", b"precious")
    with pytest.raises(UserError, match="has files of another run"):
        open_folder(tmp_path, process=18, resume=False)
    open_folder(tmp_path, process=18, resume=True)


def opening(number: int, survivors: set[int]) -> Opening:
    parties = frozenset(PartyId(party) for party in survivors)
    return Opening(RoundId(number), "rows", parties, {party: bytes([party]) * 32 for party in parties})


def test_openings_are_kept_with_the_states_of_all(tmp_path: Path) -> None:
    assert read_openings(tmp_path) == []
    kept = [opening(3, {1, 2, 3}), opening(4, {1, 2})]
    for one in kept:
        append_opening(tmp_path, one)
    with (tmp_path / "openings.jsonl").open("a") as file:
        file.write('{"round": 4, "purpose": "rows", "surv')  # a crash in the middle of a line
    assert read_openings(tmp_path) == kept
    (tmp_path / "openings.jsonl").write_text('{"round": 4}\n')
    with pytest.raises(UserError, match="not a record of openings"):
        read_openings(tmp_path)


def test_an_unused_folder_is_given_back_and_a_used_one_kept(tmp_path: Path) -> None:
    unused = RunFolder.create(tmp_path / "unused", RunConfig())
    unused.discard_if_unused()
    assert not unused.path.exists()
    used = RunFolder.create(tmp_path / "used", RunConfig())
    used.append_metrics(Evaluation(round=1))
    used.discard_if_unused()
    assert used.path.exists()


def test_a_run_that_never_began_takes_only_the_folders_along_that_it_made(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    path = tmp_path / "mine" / "runs" / "run"
    new = new_folders(path)
    RunFolder.create(path, RunConfig()).discard_if_unused(new)
    assert [found.name for found in tmp_path.rglob("*")] == ["mine"]


def test_files_of_late_clients_go_with_the_run_that_never_began(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "run"
    new = new_folders(path)
    open_folder(RunFolder(path).client(2), process=17, resume=False)  # the server has discarded the folder before
    with locked(path):
        discard_late_files(path, new)
        assert path.exists()  # another job holds it
    discard_late_files(path, [])
    assert path.exists()  # it was there before
    discard_late_files(path, new)
    assert list(tmp_path.iterdir()) == []
    discard_late_files(path, new)  # nobody was late


def test_metrics_of_undone_rounds_are_forgotten(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run", RunConfig())
    for number in (2, 4, 6):
        folder.append_metrics(Evaluation(round=number))
    with (tmp_path / "run/metrics.jsonl").open("a") as file:
        file.write('{"round": 8, "cut sho')  # a crash in the middle of a line
    folder.forget_metrics_after(4)
    assert [record.round for record in folder.metrics()] == [2, 4]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"a": 1})
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(tmp_path / "x.json", {"a": float("nan")})
    assert read_json(tmp_path / "x.json") == {"a": 1}
    with pytest.raises(UserError):
        write_whole(tmp_path / "x.json" / "below", b"")


def test_checkpoint_round_trip_keeps_the_last_two(tmp_path: Path) -> None:
    for number in (5, 10, 15):
        arrays = {"table": np.full((2, 3), number, dtype=np.float32), "step": np.array(1.5, dtype=np.float32)}
        checkpoint.save_part(tmp_path / "server", number, arrays, {"best": number})
    assert len(list((tmp_path / "server").iterdir())) == 2
    arrays, record = checkpoint.load_part(tmp_path / "server", 10)
    assert record == {"best": 10}
    assert arrays["table"].tolist() == [[10, 10, 10]] * 2
    assert arrays["step"].shape == ()
    with pytest.raises(UserError, match="not a readable checkpoint"):
        checkpoint.load_part(tmp_path / "server", 5)


@pytest.mark.parametrize("content", [b"", b"\x80\x04N.", b"\xff" * 100])
def test_a_damaged_checkpoint_is_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "checkpoint-000003.safetensors").write_bytes(content)
    with pytest.raises(UserError, match="not a readable checkpoint"):
        checkpoint.load_part(tmp_path, 3)


def test_a_checkpoint_with_what_is_no_number_is_one_line_with_its_file(tmp_path: Path) -> None:
    arrays = {"rows": np.array([1.0, np.nan], dtype=np.float32), "rounds": np.array([1, 2], dtype=np.uint32)}
    checkpoint.save_part(tmp_path, 3, arrays, {})
    with pytest.raises(UserError, match=f"^{tmp_path}/checkpoint-000003.safetensors: damaged .rows has"):
        checkpoint.load_part(tmp_path, 3)


def test_last_complete_round(tmp_path: Path) -> None:
    assert checkpoint.last_complete(tmp_path) == checkpoint.Complete(0, ())
    checkpoint.mark_complete(tmp_path, 7, {3, 1})
    assert checkpoint.last_complete(tmp_path) == checkpoint.Complete(7, (1, 3))
    (tmp_path / "checkpoint.json").write_text('{"round": "8"}')
    with pytest.raises(UserError, match="names no round"):
        checkpoint.last_complete(tmp_path)
    (tmp_path / "checkpoint.json").write_text('{"round": 8}')
    with pytest.raises(UserError, match="names no clients"):
        checkpoint.last_complete(tmp_path)


def test_a_party_that_was_absent_finds_its_last_part_before(tmp_path: Path) -> None:
    assert checkpoint.latest_before(tmp_path, 5) is None
    for round_id in (2, 4, 8):
        checkpoint.save_part(tmp_path, round_id, {}, {})
    assert checkpoint.latest_before(tmp_path, 8) == 8
    assert checkpoint.latest_before(tmp_path, 7) == 4
    assert checkpoint.latest_before(tmp_path, 3) is None  # the last two parts are kept


def test_an_opening_after_a_cut_line_stands_on_a_line_of_its_own(tmp_path: Path) -> None:
    append_opening(tmp_path, opening(1, {1}))
    with (tmp_path / "openings.jsonl").open("a") as file:
        file.write('{"round": 2, "purp')
    append_opening(tmp_path, opening(3, {2}))
    assert read_openings(tmp_path) == [opening(1, {1}), opening(3, {2})]


def test_a_whole_line_without_its_end_is_kept(tmp_path: Path) -> None:
    append_opening(tmp_path, opening(1, {1}))
    path = tmp_path / "openings.jsonl"
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert read_openings(tmp_path) == [opening(1, {1})]
    append_opening(tmp_path, opening(2, {1}))
    assert read_openings(tmp_path) == [opening(1, {1}), opening(2, {1})]


@pytest.mark.parametrize("damage", [b'{"round": 2, "purp', b"", b"\xff}", b'{"round": 2, "states": {}'])
def test_a_damaged_line_before_the_end_is_refused(tmp_path: Path, damage: bytes) -> None:
    for number in (1, 2, 3):
        append_opening(tmp_path, opening(number, {1}))
    path = tmp_path / "openings.jsonl"
    first, _, third = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + damage + b"\n" + third)
    with pytest.raises(UserError, match="line 2: not a record of openings"):
        read_openings(tmp_path)
    path.write_bytes(first + third + damage)  # at the end it was cut short
    assert read_openings(tmp_path) == [opening(1, {1}), opening(3, {1})]


@pytest.mark.parametrize("how", ["removed", "exchanged", "cut"])
def test_a_record_that_somebody_else_touches_ends_the_session(tmp_path: Path, how: str) -> None:
    """What is written to a file without a name is gone with the process, and the sum would be opened again."""
    path = tmp_path / "openings.jsonl"
    with OpeningsFile(tmp_path) as record:
        record.append(opening(1, {1}))
        record.append(opening(2, {1}))
        match how:
            case "removed":
                path.unlink()
            case "exchanged":
                (tmp_path / "copy").write_bytes(path.read_bytes())
                (tmp_path / "copy").rename(path)
            case "cut":
                path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
        with pytest.raises(UserError, match="changed by somebody else") as problem:
            record.append(opening(3, {1}))
    assert "\n" not in str(problem.value)


def test_an_opening_keeps_its_lineage_and_those_of_earlier_versions_have_none(tmp_path: Path) -> None:
    with_one = replace(opening(1, {1}), lineage="fedr/TransE/8/0/rows/1")
    for one in (with_one, opening(2, {2})):
        append_opening(tmp_path, one)
    assert read_openings(tmp_path) == [with_one, opening(2, {2})]
    first, second = (json.loads(line) for line in (tmp_path / "openings.jsonl").read_text().splitlines())
    assert first["lineage"] == with_one.lineage
    assert "lineage" not in second


def test_the_key_of_states_is_drawn_once_and_for_its_owner_only(tmp_path: Path) -> None:
    key = state_key(tmp_path / "1")
    assert len(key) == 32
    assert state_key(tmp_path / "1") == key
    assert state_key(tmp_path / "2") != key
    path = tmp_path / "1/state.key"
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(b"short")
    with pytest.raises(UserError, match="not a key of 32 bytes"):
        state_key(tmp_path / "1")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(UserError, match="not a file"):
        state_key(tmp_path / "1")


def test_a_run_without_its_name_is_not_continued(tmp_path: Path) -> None:
    """Two runs without names would be one, and share their noise."""
    assert len(run_id(tmp_path)) == 32
    (tmp_path / "run.id").write_bytes(b"")
    with pytest.raises(UserError, match="not the name of a run"):
        run_id(tmp_path)

"""Private files: what others could have read, changed or exchanged is refused, in one line and without waiting."""

import os
import tempfile
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launch.between.preflight import _files
from secure_kg.foundation.errors import UserError
from secure_kg.provisioning import private_files
from secure_kg.provisioning.private_files import (
    check_folder,
    held,
    make_folder,
    read_private,
    write_new_private,
    write_private,
)
from secure_kg.provisioning.record import own_number
from secure_kg.provisioning.signed_text import read_public
from tests.support.provisioned import Federation


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_folder(tmp_path / "site")
    write_new_private(tmp_path / "site/a", b"secret")
    return tmp_path / "site"


@given(st.integers(0, 0o777))
def test_a_file_is_read_only_if_nobody_else_may_use_it(mode: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "file"
        path.write_bytes(b"secret")
        path.chmod(mode)
        if mode & 0o077:
            with pytest.raises(UserError, match="chmod 600"):
                read_private(path)
        elif mode & 0o400:
            assert read_private(path) == b"secret"


def test_links_pipes_and_folders_are_no_private_files(folder: Path) -> None:
    os.symlink(folder / "a", folder / "link")
    os.symlink(folder / "nowhere", folder / "dangling")
    os.mkfifo(folder / "pipe", 0o600)
    (folder / "inner").mkdir(mode=0o700)
    for name, line in (("link", "symbolic"), ("dangling", "symbolic"), ("pipe", "no regular"), ("inner", "no regular"),
                       ("missing", "cannot be read")):  # fmt: skip
        with pytest.raises(UserError, match=line):
            read_private(folder / name)
    os.link(folder / "a", folder / "second")
    with pytest.raises(UserError, match="second name"):
        read_private(folder / "a")


def test_a_folder_that_others_may_enter_or_a_link_to_one_is_refused(folder: Path, tmp_path: Path) -> None:
    os.symlink(folder, tmp_path / "link")
    with pytest.raises(UserError, match="symbolic link"):
        check_folder(tmp_path / "link")
    with pytest.raises(UserError):
        make_folder(tmp_path / "link")
    folder.chmod(0o710)
    with pytest.raises(UserError, match="chmod 700"):
        check_folder(folder)


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_followed(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("theirs")
    os.symlink(outside, folder / "b")
    with pytest.raises(UserError):
        write_new_private(folder / "b", b"mine")
    write_private(folder / "b", b"mine")
    assert outside.read_text() == "theirs"
    assert read_private(folder / "b") == b"mine"


def test_a_large_file_is_not_read(folder: Path) -> None:
    with (folder / "a").open("wb") as file:
        file.truncate(1 << 34)
    with pytest.raises(UserError, match="larger"):
        read_private(folder / "a")


def test_commands_wait_for_each_other_and_not_for_ever(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def second() -> None:
        with held(folder):
            order.append("second")

    with held(folder):
        thread = threading.Thread(target=second)
        thread.start()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    monkeypatch.setattr(private_files, "_PATIENCE", 0.0)
    with held(folder), pytest.raises(UserError, match="another command is at work"), held(folder):
        pass


def test_a_command_that_is_killed_while_it_begins_a_rotation_locks_nobody_out(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty next-identity.key would be an error of every command from then on."""
    site = federation.sites[0]

    def killed(descriptor: int) -> None:
        raise SystemExit

    monkeypatch.setattr(os, "fsync", killed)
    monkeypatch.setattr(Path, "unlink", lambda path, missing_ok=False: None)
    with pytest.raises(SystemExit):
        site.next_identity()
    monkeypatch.undo()
    assert site.upcoming() is None
    assert own_number(federation.roster(), site.path) == 1
    assert site.next_identity() == site.next_identity()


def test_what_a_killed_command_leaves_of_a_public_file_is_no_alarm(federation: Federation) -> None:
    site = federation.sites[0].path
    for name, status in (("request.toml.0a.draft", "ok"), ("tls-client.pem.0a.draft", "problem")):
        (site / name).write_text("")
        (site / name).chmod(0o644)
        assert _files(site).status == status


def test_a_pipe_that_takes_the_place_of_a_public_file_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever can write to the folder into which files are mailed can do that between a check and its use."""
    os.mkfifo(tmp_path / "federation.toml")
    monkeypatch.setattr(Path, "is_file", lambda path: True)
    with pytest.raises(UserError, match="no regular file"):
        read_public(tmp_path / "federation.toml", 100)


def test_certificates_are_not_dated_to_the_end_of_all_times(federation: Federation) -> None:
    with pytest.raises(UserError, match="refuses its TLS certificates until 9999"):
        federation.sites[0].renew_leaf("client", datetime(9999, 12, 31, tzinfo=UTC))

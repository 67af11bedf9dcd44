"""Private files: what others could have read, changed or exchanged is refused, in one line and without waiting."""

import os
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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

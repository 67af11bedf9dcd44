"""Identities as files: modes, nothing overwritten, nothing private said, and one line for every mistake."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import launch.keygen
from launch.keygen import main
from protocols.foundation.identifiers import PartyId, new_session
from protocols.session.channels import channel_statement
from protocols.session.identities import parse_directory, parse_public
from secure_kg.foundation.errors import UserError
from secure_kg.runs.key_files import load_credentials
from secure_kg.runs.run_folder import DRAFT, write_whole

Capture = pytest.CaptureFixture[str]


def make(folder: Path, clients: int = 2) -> Path:
    assert main(["--clients", str(clients), "--out", str(folder)]) == 0
    return folder


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def secret_line(path: Path) -> str:
    """The one line of a private file that matters."""
    return path.read_text().split("\n")[1]


def refused(arguments: list[str], message: str, capsys: Capture) -> None:
    capsys.readouterr()
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("error: ")
    assert output.err.count("\n") == 1
    assert message in output.err


# --- one pair -------------------------------------------------------------------------------------------------------


def test_one_pair(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "new" / "keys"
    assert main(["--client", "3", "--out", str(out)]) == 0
    output = capsys.readouterr()
    assert sorted(path.name for path in out.iterdir()) == ["client-3.key", "client-3.toml"]
    assert (out / "client-3.key").read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----\n")
    client = parse_public((out / "client-3.toml").read_text())
    assert (client.number, client.name) == (3, None)
    assert client.fingerprint in output.out
    assert output.err == ""
    secret = secret_line(out / "client-3.key")
    assert not any(secret in text for text in (output.out, (out / "client-3.toml").read_text()))


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_private_file_is_its_owners_from_the_first_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: int
) -> None:
    asked = []
    real = os.open

    def watched(path: Path, flags: int, permissions: int = 0o777) -> int:
        if Path(path).suffix != DRAFT:  # of the public file, which is for everybody
            asked.append((Path(path).name, permissions, bool(flags & os.O_CREAT), bool(flags & os.O_EXCL)))
        return real(path, flags, permissions)

    monkeypatch.setattr(os, "open", watched)
    before = os.umask(umask)
    try:
        assert main(["--client", "1", "--out", str(tmp_path)]) == 0
    finally:
        os.umask(before)
    assert asked == [("client-1.key", 0o600, True, True)]
    assert mode(tmp_path / "client-1.key") == 0o600
    assert mode(tmp_path / "client-1.toml") == 0o666 & ~umask


@pytest.mark.parametrize("name", ["client-1.key", "client-1.toml"])
def test_a_pair_is_never_overwritten(tmp_path: Path, capsys: Capture, name: str) -> None:
    (tmp_path / name).write_text("keep")
    refused(["--client", "1", "--out", str(tmp_path)], f"{name}: exists already and is not overwritten", capsys)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "keep")]


def test_a_link_to_nowhere_is_not_followed(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "client-1.key").symlink_to(tmp_path / "elsewhere")
    refused(["--client", "1", "--out", str(tmp_path / "keys")], "exists already", capsys)
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_appears_meanwhile_is_not_overwritten(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "client-1.key").write_text("keep")
    monkeypatch.setattr(os.path, "lexists", lambda path: False)
    refused(["--client", "1", "--out", str(tmp_path)], "client-1.key: cannot be written (File exists)", capsys)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("client-1.key", "keep")]


def test_a_failure_leaves_no_half_set(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    real = write_whole

    def failing(path: Path, content: bytes) -> None:
        if path.name == "directory.toml":
            raise UserError(f"{path}: cannot be written (No space left on device)")
        real(path, content)

    monkeypatch.setattr(launch.keygen, "write_whole", failing)
    refused(["--clients", "2", "--out", str(tmp_path)], "No space left on device", capsys)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    make(tmp_path)


# --- all pairs ------------------------------------------------------------------------------------------------------


def test_all_pairs(tmp_path: Path, capsys: Capture) -> None:
    out = make(tmp_path / "keys", clients=3)
    output = capsys.readouterr().out
    clients = parse_directory((out / "directory.toml").read_text())
    assert clients == tuple(parse_public((out / f"client-{k}.toml").read_text()) for k in (1, 2, 3))
    assert all(client.fingerprint in output for client in clients)
    assert "In earnest every client makes its own pair" in output
    assert {path.name: mode(path) & 0o077 for path in out.glob("*.key")} == {f"client-{k}.key": 0 for k in (1, 2, 3)}
    secrets = [secret_line(path) for path in out.glob("*.key")]
    assert len(set(secrets)) == 3
    said = output + "".join(path.read_text() for path in out.glob("*.toml"))
    assert not any(secret in said for secret in secrets)


@pytest.mark.parametrize("name", ["client-2.key", "client-1.toml", "directory.toml"])
def test_no_file_of_a_set_is_overwritten(tmp_path: Path, capsys: Capture, name: str) -> None:
    (tmp_path / name).write_text("keep")
    refused(["--clients", "2", "--out", str(tmp_path)], f"{name}: exists already", capsys)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "keep")]


# --- the directory --------------------------------------------------------------------------------------------------


def test_collected_files_give_the_same_bytes_in_any_order(tmp_path: Path, capsys: Capture) -> None:
    keys = make(tmp_path / "keys", clients=3)
    files = [str(keys / f"client-{k}.toml") for k in (1, 2, 3)]
    capsys.readouterr()
    assert main(["--collect", *files, "--out", str(tmp_path / "a")]) == 0
    first = capsys.readouterr().out
    assert main(["--collect", *reversed(files), "--out", str(tmp_path / "b" / "directory.toml")]) == 0
    second = capsys.readouterr().out
    (tmp_path / "c.toml").mkdir()  # a folder, whatever its name
    assert main(["--collect", *files, "--out", str(tmp_path / "c.toml")]) == 0
    written = [(tmp_path / name / "directory.toml").read_bytes() for name in ("keys", "a", "b", "c.toml")]
    assert len(set(written)) == 1
    for client in parse_directory(written[0].decode()):
        for output in (first, second):
            line = next(line for line in output.split("\n") if client.fingerprint in line)
            assert line.split()[1] == str(client.number)
    assert "over another channel" in first


def test_names_are_carried_over_and_shown(tmp_path: Path, capsys: Capture) -> None:
    keys = make(tmp_path / "keys")
    with (keys / "client-2.toml").open("a") as file:
        file.write('name = "[red] hospital"\n')
    capsys.readouterr()
    assert main(["--collect", str(keys / "client-1.toml"), str(keys / "client-2.toml"), "--out", str(tmp_path)]) == 0
    assert "[red] hospital" in capsys.readouterr().out
    assert [one.name for one in parse_directory((tmp_path / "directory.toml").read_text())] == [None, "[red] hospital"]


def test_a_directory_is_never_overwritten(tmp_path: Path, capsys: Capture) -> None:
    keys = make(tmp_path / "keys")
    before = (keys / "directory.toml").read_bytes()
    files = [str(keys / "client-1.toml"), str(keys / "client-2.toml")]
    for out in (keys, keys / "directory.toml"):
        refused(["--collect", *files, "--out", str(out)], "directory.toml: exists already", capsys)
    assert (keys / "directory.toml").read_bytes() == before


def test_what_is_not_collected(tmp_path: Path, capsys: Capture) -> None:
    keys, others = make(tmp_path / "keys", clients=3), make(tmp_path / "others")
    first, second = keys / "client-1.toml", keys / "client-2.toml"
    (tmp_path / "same.toml").write_text(first.read_text().replace("number = 1", "number = 9"))
    (tmp_path / "odd.toml").write_text(first.read_text() + "colour = 1\n")
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe4"')
    cases = {
        "--collect: client 1 stands there twice": [first, second, others / "client-1.toml"],
        "--collect: client 2 stands there twice": [first, second, second],
        "--collect: clients 1 and 9 have the same public key": [first, tmp_path / "same.toml"],
        "--collect: a key directory needs at least two clients": [first],
        "odd.toml: unknown key 'colour'": [second, tmp_path / "odd.toml"],
        "latin.toml: not a text file in UTF-8": [tmp_path / "latin.toml"],
        "none.toml: cannot be read (No such file or directory)": [first, tmp_path / "none.toml"],
        "keys: cannot be read (Is a directory)": [keys],
        "directory.toml: a key directory, not the public file of one client": [keys / "directory.toml"],
        "client-1.key: a private key, which its owner must not pass on": [keys / "client-1.key", second],
    }
    for message, files in cases.items():
        refused(["--collect", *map(str, files), "--out", str(tmp_path / "new")], message, capsys)
    assert not (tmp_path / "new").exists()


# --- what a client reads --------------------------------------------------------------------------------------------


def test_credentials_from_files_sign_and_verify(tmp_path: Path) -> None:
    keys = make(tmp_path)
    one, two = load_credentials(keys, 1), load_credentials(keys, 2)
    statement = channel_statement(new_session(), PartyId(1), b"a channel key")
    two.check(statement, one.sign(statement))
    assert secret_line(keys / "client-1.key") not in repr(one)


def test_pairs_made_apart_and_a_collected_directory_work_together(tmp_path: Path) -> None:
    folders = {number: tmp_path / f"machine-{number}" for number in (1, 4)}
    for number, folder in folders.items():
        assert main(["--client", str(number), "--out", str(folder)]) == 0
    files = [str(folder / f"client-{number}.toml") for number, folder in folders.items()]
    for folder in folders.values():
        assert main(["--collect", *files, "--out", str(folder)]) == 0
    statement = channel_statement(new_session(), PartyId(4), b"a channel key")
    signature = load_credentials(folders[4], 4).sign(statement)
    load_credentials(folders[1], 1).check(statement, signature)


@pytest.mark.parametrize("permissions", [0o640, 0o604, 0o620, 0o610, 0o644])
def test_a_private_key_that_others_can_use_is_refused(tmp_path: Path, permissions: int) -> None:
    keys = make(tmp_path)
    (keys / "client-1.key").chmod(permissions)
    with pytest.raises(UserError, match=r"client-1\.key: .* chmod 600 it") as refusal:
        load_credentials(keys, 1)
    assert secret_line(keys / "client-1.key") not in str(refusal.value)
    (keys / "client-1.key").chmod(0o400)
    load_credentials(keys, 1)


def test_files_that_are_missing_or_do_not_fit(tmp_path: Path) -> None:
    keys, others = make(tmp_path / "keys"), make(tmp_path / "others", clients=3)

    def line(client: int = 1) -> str:
        with pytest.raises(UserError) as refusal:
            load_credentials(keys, client)
        assert "\n" not in str(refusal.value)
        return str(refusal.value)

    key, directory = keys / "client-1.key", keys / "directory.toml"
    assert line(client=0) == f"{keys / 'client-0.key'}: cannot be read (No such file or directory)"
    (others / "client-3.key").rename(keys / "client-3.key")
    assert line(client=3) == f"{keys / 'client-3.key'}: client 3 is not in the key directory"
    good = directory.read_bytes()
    directory.write_bytes((others / "directory.toml").read_bytes())
    assert line() == f"{key}: the key directory has another public key for client 1 than this private key's"
    directory.write_bytes(good + b"colour = 1\n")
    assert line() == f"{directory}: [[client]] table 2: unknown key 'colour'"
    directory.write_bytes(b"\xff")
    assert line() == f"{directory}: not a text file in UTF-8"
    directory.write_bytes(good)
    key.write_text("no key")
    assert line() == f"{key}: not an unencrypted private key in PEM form"
    key.unlink()
    key.mkdir()
    assert line() == f"{key}: cannot be read (Is a directory)"
    directory.unlink()
    assert line() == f"{directory}: cannot be read (No such file or directory)"


# --- the command ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "missing: one of --client, --clients, --collect"),
        (["--client", "1", "--clients", "2"], "--clients: not allowed with argument --client"),
        (["--clients", "2", "--collect", "a"], "--collect: not allowed with argument --clients"),
        (["--client", "0"], "--client 0: clients are numbered from 1"),
        (["--client", "-1"], "--client -1: clients are numbered from 1"),
        (["--client", str(2**31)], "clients are numbered from 1 to 2147483647"),
        (["--client", "one"], "--client one: must be a whole number"),
        (["--clients", "1"], "--clients 1: at least 2 are needed"),
        (["--clients", "10001"], "--clients 10001: at most 10000 at once, to try it out"),
        (["--clients", "-4"], "--clients -4: at least 2 are needed"),
        (["--collect"], "--collect: a value is missing: --collect FILE"),
        (["--client", "1", "--colour", "red"], "unknown option --colour"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, capsys: Capture, arguments: list[str], message: str) -> None:
    refused(["--out", str(tmp_path / "out"), *arguments], message, capsys)
    assert not (tmp_path / "out").exists()


def test_out_is_needed(capsys: Capture) -> None:
    refused(["--client", "1"], "missing: --out DIR", capsys)
    refused([], "missing: --out DIR", capsys)


def test_a_folder_that_cannot_be_made(tmp_path: Path, capsys: Capture) -> None:
    keys = make(tmp_path / "keys")
    (tmp_path / "file").write_text("keep")
    collect = ["--collect", str(keys / "client-1.toml"), str(keys / "client-2.toml")]
    for use in (["--client", "1"], ["--clients", "2"], collect):
        refused([*use, "--out", str(tmp_path / "file")], "file: cannot be created (File exists)", capsys)
        refused([*use, "--out", str(tmp_path / "file" / "in")], "in: cannot be created (Not a directory)", capsys)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path, capsys: Capture) -> None:
    tmp_path.chmod(0o500)
    refused(["--client", "1", "--out", str(tmp_path)], "client-1.key: cannot be written (Permission denied)", capsys)
    refused(["--client", "1", "--out", str(tmp_path / "in")], "in: cannot be created (Permission denied)", capsys)


def test_help_teaches_with_examples_that_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.split("\n"))) <= 112
    assert all(words in text for words in ("--adversary active", "its own keys in between", "Ed25519", "--keys keys"))
    pair, collect, trial = [line.split()[3:] for line in text.split("\n") if line.startswith("  python -m")]
    monkeypatch.chdir(tmp_path)
    for arguments in (pair, ["--client", "2", "--out", "."], collect):
        assert main(arguments) == 0
    load_credentials(Path("keys"), 1)
    (tmp_path / "trial").mkdir()
    monkeypatch.chdir(tmp_path / "trial")
    assert main(trial) == 0
    load_credentials(Path("keys"), 5)


@pytest.mark.long
def test_runs_as_a_module(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "launch.keygen", "--out", str(tmp_path / "keys"), "--clients"]
    root = Path(__file__).parents[2]
    done = subprocess.run([*command, "1"], capture_output=True, text=True, cwd=root, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "error: --clients 1: at least 2 are needed\n")
    done = subprocess.run([*command, "2"], capture_output=True, text=True, cwd=root, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not any(secret_line(path) in done.stdout for path in (tmp_path / "keys").glob("*.key"))


def test_the_command_loads_no_model_code() -> None:
    code = "import launch.keygen, sys; print(sorted({'torch', 'pykeen', 'pandas', 'mpi4py'} & sys.modules.keys()))"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")

"""`secure-kg site`: an identity that stays, a coordinator that a person has compared, a check that says what to do."""

import json
import os
import stat
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from launch import cli, site
from launch.between import comparing
from secure_kg.data.sources import PooledSource, load_source
from secure_kg.provisioning.request import read_request
from secure_kg.provisioning.site_folder import SiteFolder
from tests.support.provisioned import Federation, free_port, request_of, serving

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def federation(tmp_path: Path) -> Federation:
    return Federation(tmp_path, f"127.0.0.1:{free_port()}")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A person at a terminal."""

    def give(text: str) -> None:
        monkeypatch.setattr(comparing, "is_terminal", lambda: True)
        monkeypatch.setattr(site, "is_terminal", lambda: True)
        monkeypatch.setattr("builtins.input", lambda prompt: text)

    return give


def checked(federation: Federation, *more: str) -> tuple[int, dict[str, dict[str, str]]]:
    """The exit code of a check by the first site, and its findings by what they are about."""
    out = Path("found.json")
    arguments = ["site", "check", str(federation.path), "--folder", str(federation.sites[0].path)]
    code = cli.main([*arguments, "--fingerprint", federation.pin, "--json", str(out), *more])
    found: dict[str, Any] = json.loads(out.read_text())
    return code, {one["about"]: one for one in found["findings"]}


def test_a_new_site_keeps_its_keys_and_shows_its_fingerprint(capsys: Capture) -> None:
    assert cli.main(["site", "new", "--name", "North Hospital"]) == 0
    told = capsys.readouterr().out
    request = read_request(Path("site/request.toml"))
    assert request.name == "North Hospital"
    assert f"\n    {request.fingerprint}\n" in told
    assert "site/request.toml" in told
    for path in Path("site").iterdir():
        assert ("PRIVATE KEY" in path.read_text()) == (path.name in ("identity.key", "tls-client.pem"))
        if path.name != "request.toml":
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(Path("site").stat().st_mode) == 0o700


def test_a_folder_with_anything_in_it_is_left_alone(capsys: Capture) -> None:
    assert cli.main(["site", "new", "--name", "North"]) == 0
    before = Path("site/identity.key").read_bytes()
    assert cli.main(["site", "new", "--name", "North"]) == 2
    assert capsys.readouterr().err == "error: site: exists already and is not empty; nothing in it was changed\n"
    assert Path("site/identity.key").read_bytes() == before


def test_a_coordinator_is_accepted_by_its_fingerprint_alone(federation: Federation, capsys: Capture) -> None:
    arguments = ["site", "check", str(federation.path), "--folder", str(federation.sites[0].path)]
    record = federation.sites[0].path / "record.json"
    assert cli.main(arguments) == 2
    assert "--fingerprint is missing" in capsys.readouterr().err
    other = " ".join(["0000"] * 8)
    for wrong, line in ((other, "has another one"), (federation.pin[:-5], "eight groups"), ("", "eight groups")):
        assert cli.main([*arguments, "--fingerprint", wrong]) == 2
        told = capsys.readouterr()
        assert line in told.err
        assert told.err.count("\n") == 1
    assert not record.exists()
    assert cli.main([*arguments, "--fingerprint", federation.pin.upper().replace(" ", "\u00a0")]) == 0
    assert record.exists()
    assert cli.main(arguments) == 0  # once
    assert cli.main([*arguments, "--fingerprint", other]) == 2


@pytest.mark.parametrize(("answer", "code"), [("yes", 0), ("no", 2), ("y", 2), ("", 2)])
def test_a_person_at_a_terminal_is_asked(
    answer: str, code: int, federation: Federation, answers: Callable[[str], None], capsys: Capture
) -> None:
    answers(answer)
    folder = federation.sites[0].path
    assert cli.main(["site", "check", str(federation.path), "--folder", str(folder)]) == code
    assert federation.pin in capsys.readouterr().out
    assert (folder / "record.json").exists() == (code == 0)


def test_all_is_well_where_a_server_answers(federation: Federation) -> None:
    port = int(federation.roster().address.rpartition(":")[2])
    with serving(federation, port):
        code, found = checked(federation)
    assert code == 0
    assert {one["status"] for one in found.values()} <= {"ok"} | {found["disk"]["status"]}
    assert "pinned identity" in found["server"]["found"]
    assert "apart from the server's" in found["clock"]["found"]


@pytest.mark.parametrize(("hours", "status"), [(0.1, "note"), (-0.1, "note"), (30, "problem"), (-2, "problem")])
def test_a_clock_that_is_wrong_is_told(hours: float, status: str, federation: Federation) -> None:
    port = int(federation.roster().address.rpartition(":")[2])
    with serving(federation, port, lambda now: now + timedelta(hours=hours)):
        code, found = checked(federation)
    assert found["clock"]["status"] == status
    assert "set the clock" in found["clock"]["next_step"]
    assert code == (status == "problem")


def test_a_server_that_is_not_there_yet_is_a_note(federation: Federation) -> None:
    code, found = checked(federation)
    assert code == 0
    assert found["server"]["status"] == "note"
    assert "nobody listens" in found["server"]["found"]


def test_somebody_else_in_the_servers_place_is_a_problem(federation: Federation, tmp_path: Path) -> None:
    port = int(federation.roster().address.rpartition(":")[2])
    with serving(Federation(tmp_path / "other"), port):
        code, found = checked(federation)
    assert code == 1
    assert "not the server of this federation" in found["server"]["found"]


def test_a_server_with_an_older_federation_refuses_a_later_member(federation: Federation, tmp_path: Path) -> None:
    port = int(federation.roster().address.rpartition(":")[2])
    old = federation.path.read_bytes()
    later = SiteFolder.new(tmp_path / "later", "Later")
    with serving(federation, port):
        coordinator = federation.coordinator
        federation.coordinator = coordinator.publish(coordinator.approve([request_of(later)]))
        newer = tmp_path / "newer.toml"
        newer.write_bytes(federation.path.read_bytes())
        federation.path.write_bytes(old)  # the server has not got the newer one
        code = cli.main(["site", "check", str(newer), "--folder", str(later.path), "--fingerprint", federation.pin,
                         "--json", "found.json"])  # fmt: skip
    found = {one["about"]: one for one in json.loads(Path("found.json").read_text())["findings"]}
    assert code == 1
    assert "the server an older federation.toml" in found["server"]["next_step"]


def test_whoever_is_no_member_or_no_longer_is_told(federation: Federation, tmp_path: Path, capsys: Capture) -> None:
    stranger = SiteFolder.new(tmp_path / "stranger", "Stranger")
    arguments = ["site", "check", str(federation.path), "--fingerprint", federation.pin, "--json", "-"]
    assert cli.main([*arguments, "--folder", str(stranger.path)]) == 1
    found = {one["about"]: one for one in json.loads(capsys.readouterr().out)["findings"]}
    assert "is no member" in found["membership"]["found"]
    assert "read its fingerprint out" in found["membership"]["next_step"]
    federation.revoke("1")
    code, found = checked(federation)
    assert code == 1
    assert "was revoked" in found["membership"]["found"]
    assert "server" not in found


def test_an_older_version_and_another_coordinator_are_refused(
    federation: Federation, tmp_path: Path, capsys: Capture
) -> None:
    old = federation.path.read_bytes()
    federation.revoke("2")
    assert checked(federation)[0] == 0
    (tmp_path / "old.toml").write_bytes(old)
    other = Federation(tmp_path / "other")
    capsys.readouterr()
    for path, line in ((tmp_path / "old.toml", "an old one"), (other.path, "another identity")):
        assert cli.main(["site", "check", str(path), "--folder", str(federation.sites[0].path)]) == 2
        told = capsys.readouterr()
        assert line in told.err
        assert (told.out, told.err.count("\n")) == ("", 1)


def test_data_are_read_as_training_reads_them(federation: Federation, tmp_path: Path) -> None:
    source = load_source("nations")
    assert isinstance(source, PooledSource)
    lines = [f"{source.entities[h]}\t{source.relations[r]}\t{source.entities[t]}\n" for h, r, t in source.triples]
    graph = tmp_path / "mine.tsv"
    graph.write_text("".join(lines))
    code, found = checked(federation, "--data", str(graph))
    assert code == 0
    assert found["data"]["found"].startswith(f"{len(source.entities)} entities")
    graph.write_text("one\ttwo\n")
    code, found = checked(federation, "--data", str(graph))
    assert code == 1
    assert "mine.tsv, line 1" in found["data"]["found"]
    code, found = checked(federation, "--data", "nowhere.nt")
    assert "no such file" in found["data"]["found"]


@pytest.mark.parametrize("name", ["identity.key", "tls-client.pem", "record.json", "site.json", "."])
def test_private_files_that_others_can_read_are_refused_in_one_line(
    name: str, federation: Federation, capsys: Capture
) -> None:
    assert checked(federation)[0] == 0
    federation.sites[0].leaf_file("client")
    capsys.readouterr()
    folder = federation.sites[0].path
    os.chmod(folder / name, 0o755 if name == "." else 0o640)
    code = cli.main(["site", "check", str(federation.path), "--folder", str(folder)])
    told = capsys.readouterr()
    if code == 1:
        assert "chmod 600" in " ".join(told.out.split())
    else:
        assert code == 2
        assert told.err.count("\n") == 1
        assert "chmod" in told.err


def test_a_renewed_key_is_another_and_a_rotation_waits_for_the_roster(federation: Federation, capsys: Capture) -> None:
    own = federation.sites[0]
    leaf, identity = own.leaf_file("client").read_bytes(), own.identity
    assert cli.main(["site", "renew", "--folder", str(own.path)]) == 0
    assert own.leaf_file("client").read_bytes() != leaf
    assert own.identity == identity
    assert cli.main(["site", "rotate", "--folder", str(own.path)]) == 0
    request = read_request(own.path / "request.toml")
    assert request.previous == identity == own.identity
    assert request.fingerprint in capsys.readouterr().out
    federation.coordinator = federation.coordinator.publish(federation.coordinator.approve([request]))
    assert checked(federation)[0] == 0
    assert own.identity == request.identity
    capsys.readouterr()
    assert cli.main(["site", "show", "--folder", str(own.path)]) == 0
    assert f"fingerprint  {request.fingerprint}" in capsys.readouterr().out


def test_members_are_noted_as_compared_when_a_person_says_so(
    federation: Federation, answers: Callable[[str], None]
) -> None:
    assert "Site 2" in checked(federation)[1]["members"]["found"]
    assert checked(federation, "--members-compared")[1]["members"]["found"] == "their fingerprints were compared"
    answers("no")
    assert cli.main(["site", "check", str(federation.path), "--folder", str(federation.sites[1].path),
                     "--fingerprint", federation.pin, "--members-compared"]) == 2  # fmt: skip


@pytest.mark.parametrize("columns", ["80", "120"])
def test_no_fingerprint_is_broken_over_lines(
    columns: str, federation: Federation, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    federation.sites[0].next_identity()
    assert checked(federation)[0] == 0
    capsys.readouterr()
    for use in (["site", "show", "--folder", str(federation.sites[0].path)],
                ["federation", "show", "--folder", str(federation.coordinator.site.path)]):  # fmt: skip
        assert cli.main(use) == 0
        told = capsys.readouterr().out
        assert federation.pin in told
        # 128 bits: whoever signs can find two texts that have 64 bits of their digests in common.
        digits = federation.roster().file_digest.hex()[:32]
        assert " ".join(digits[at : at + 4] for at in range(0, 32, 4)) in told

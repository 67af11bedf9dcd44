"""`secure-kg federation`: nobody becomes a member unseen, and every change is a new version."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from launch import cli, federation
from launch.between import comparing
from protocols.session.site_keys import fingerprint
from secure_kg.learning.config import TrainingConfig
from secure_kg.provisioning.roster import Roster, load_roster, signer_of
from secure_kg.provisioning.site_folder import SiteFolder

Capture = pytest.CaptureFixture[str]
FOUND = ["federation", "new", "fede", "--name", "Centre", "--address", "fed.example.org:8443"]
FILE = Path("coordinator/federation.toml")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A person at a terminal."""

    def give(text: str) -> None:
        monkeypatch.setattr(federation, "is_terminal", lambda: True)
        monkeypatch.setattr("builtins.input", lambda prompt: text)

    return give


def roster() -> Roster:
    return load_roster(FILE, fingerprint(signer_of(FILE)))


def site(name: str) -> tuple[str, str]:
    """The request of a new site, and its fingerprint."""
    folder = name.lower()
    assert cli.main(["site", "new", "--name", name, "--folder", folder]) == 0
    return f"{folder}/request.toml", fingerprint(SiteFolder.open(Path(folder)).identity)


def approve(*requests: tuple[str, str], more: tuple[str, ...] = ()) -> int:
    given = [word for _, mark in requests for word in ("--fingerprint", mark)]
    return cli.main(["federation", "approve", *(path for path, _ in requests), *given, *more])


def test_settings_are_those_of_the_training_command() -> None:
    assert cli.main([*FOUND, "--dim", "24", "--rounds", "7", "--model", "rotate", "--aggregation", "secret"]) == 0
    settings = roster().settings
    assert (settings.strategy, settings.training.model, settings.training.dim) == ("fede", "RotatE", 24)
    assert (settings.rounds, settings.aggregation) == (7, "secret")
    assert settings.training.batch_size == TrainingConfig().batch_size  # not that of small graphs


def test_queries_and_an_active_server_have_their_settings() -> None:
    assert cli.main(["federation", "new", "fedcqa", "--name", "A", "--address", "a:1", "--folder", "one"]) == 0
    assert cli.main([*FOUND, "--adversary", "active"]) == 0
    assert roster().settings.adversary == "active"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--client-data", "parts"], "each site names its own data"),
        (["--keys=k"], "each site's identity is in its own folder"),
        (["-n", "4"], "as many clients as members"),
        (["--out", "runs/x"], "is no setting of a federation"),
        (["--dimm", "3"], "did you mean --dim?"),
        (["--rounds", "many"], "--rounds many: must be a whole number"),
        (["--aggregation", "plain", "--adversary", "active"], "--adversary active needs --aggregation"),
        (["--strategy", "entire"], "pools all triples"),
        (["--days", "0"], "--days must lie between"),
        (["--fingerprint", "ab"], "--fingerprint is for --server-request"),
    ],
)
def test_a_mistake_founds_nothing(options: list[str], line: str, capsys: Capture) -> None:
    assert cli.main([*FOUND, *options]) == 2
    told = capsys.readouterr()
    assert line in told.err
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert not FILE.exists()


@pytest.mark.parametrize(
    ("trainer", "options", "preset", "dim"),
    [
        ("fede", (), "paper", 128),
        ("fede", ("--preset", "small"), "small", 256),
        ("fede", ("--preset=fede",), "fede", 256),
        ("fede", ("--dataset", "umls"), "small", 256),
        ("fede", ("--dataset=elsewhere.tsv",), "paper", 128),
        ("fedcqa", (), "usual", None),
        ("fedcqa", ("--preset", "auto"), "small", None),
    ],
)
def test_the_preset_that_was_taken_is_told(
    trainer: str, options: tuple[str, ...], preset: str, dim: int | None, capsys: Capture
) -> None:
    assert cli.main(["federation", "new", trainer, "--name", "A", "--address", "a:1", *options]) == 0
    assert f"preset: {preset} " in capsys.readouterr().out
    assert dim is None or roster().settings.training.dim == dim


def test_the_digest_of_the_settings_is_told_with_the_number_of_members(capsys: Capture) -> None:
    assert cli.main(FOUND) == 0
    told = [capsys.readouterr().out]
    assert approve(site("North"), site("South")) == 0
    told.append(capsys.readouterr().out)
    digest = roster().settings.digest().hex()
    assert f"digest {digest[:4]} {digest[4:8]} for 2 members" in told[1]
    assert "without members" in told[0]
    assert cli.main(["federation", "revoke", "1", "--yes"]) == 0
    assert f"digest {digest[:4]} {digest[4:8]} for 2 members, revoked ones among them" in capsys.readouterr().out


def test_nobody_is_approved_without_a_fingerprint(capsys: Capture) -> None:
    assert cli.main(FOUND) == 0
    (north, mark), (south, other) = site("North"), site("South")
    before = FILE.read_bytes()
    capsys.readouterr()
    tries: tuple[tuple[list[str], str], ...] = (
        ([north], "--fingerprint is missing: give what North read out"),
        ([north, south, "--fingerprint", mark], "--fingerprint: that of South is missing; nothing was approved"),
        ([north, south, "--fingerprint", mark, "--fingerprint", f"{mark[:-4]}0000"], "none of those given is that of"),
        ([north, "--fingerprint", other], "none of those given is that of North"),
        ([north, "--fingerprint", mark, "--fingerprint", other], "one more than requests"),
        ([north, "--fingerprint", mark[:-1]], "eight groups"),
        ([north, "--yes"], "not an option"),
    )
    for arguments, line in tries:
        assert cli.main(["federation", "approve", *arguments]) == 2
        told = capsys.readouterr()
        assert line in told.err
        assert told.err.count("\n") == 1
    assert FILE.read_bytes() == before
    assert approve((north, mark), (south, other)) == 0
    assert [one.name for one in roster().members] == ["North", "South"]


@pytest.mark.parametrize(("answer", "members"), [("yes", 1), ("no", 0), ("y", 0)])
def test_a_person_at_a_terminal_sees_the_fingerprint_and_is_asked(
    answer: str, members: int, answers: Callable[[str], None], capsys: Capture
) -> None:
    assert cli.main(FOUND) == 0
    request, mark = site("North")
    answers(answer)
    capsys.readouterr()
    assert cli.main(["federation", "approve", request]) == (0 if members else 2)
    assert mark in capsys.readouterr().out
    assert len(roster().members) == members


def test_one_request_twice_or_a_name_of_two_adds_nobody(capsys: Capture) -> None:
    assert cli.main(FOUND) == 0
    north = site("North")
    assert cli.main(["federation", "approve", north[0], north[0], "--fingerprint", north[1]]) == 2
    assert "is a member already" in capsys.readouterr().err
    assert approve(north) == 0
    assert cli.main(["site", "new", "--name", "NORTH", "--folder", "again"]) == 0
    mark = fingerprint(SiteFolder.open(Path("again")).identity)
    assert approve(("again/request.toml", mark)) == 2
    assert "have the same name" in capsys.readouterr().err
    assert roster().version == 2


def test_versions_rise_with_every_change(capsys: Capture) -> None:
    assert cli.main(FOUND) == 0
    north, south = site("North"), site("South")
    assert approve(north, south) == 0
    assert cli.main(["federation", "revoke", "north", "--certificates-only", "--yes"]) == 0
    assert roster().members[0].issued_from is not None
    assert cli.main(["federation", "revoke", "North"]) == 2
    assert "say --yes" in capsys.readouterr().err
    assert cli.main(["federation", "revoke", "1", "--yes"]) == 0
    assert cli.main(["federation", "renew", "--days", "10", "--address", "[::1]:99", "--json", "made.json"]) == 0
    made = json.loads(Path("made.json").read_text())
    assert (made["version"], made["address"]) == (5, "[::1]:99")
    assert [one["revoked"] for one in made["members"]] == [True, False]
    assert (roster().expires - roster().made).days == 10


def test_a_revoked_identity_never_comes_back_and_its_place_can_be_taken(capsys: Capture) -> None:
    assert cli.main(FOUND) == 0
    north, south, west = site("North"), site("South"), site("West")
    assert approve(north, south) == 0
    assert cli.main(["federation", "revoke", "North", "--yes"]) == 0
    assert approve(north) == 2
    assert "was revoked, as number 1" in capsys.readouterr().err
    assert approve(west, more=("--in-place-of", "South")) == 2
    assert approve(west, more=("--in-place-of", "North")) == 0
    assert [one.name for one in roster().members] == ["West", "South"]
    assert approve(north) == 2
    assert "was retired" in capsys.readouterr().err


def test_a_rotation_is_approved_like_a_request_and_only_once(capsys: Capture) -> None:
    assert cli.main(FOUND) == 0
    north = site("North")
    assert approve(north) == 0
    assert cli.main(["site", "rotate", "--folder", "north"]) == 0
    rotation = Path("north/request.toml").read_bytes()
    upcoming = SiteFolder.open(Path("north")).upcoming()
    assert upcoming is not None
    assert approve(north) == 2  # its old fingerprint
    assert approve((north[0], fingerprint(upcoming))) == 0
    assert (roster().members[0].identity, roster().members[0].name) == (upcoming, "North")
    capsys.readouterr()
    Path("replayed.toml").write_bytes(rotation)
    assert approve(("replayed.toml", fingerprint(upcoming))) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert len(roster().members) == 1


def test_another_machine_may_run_the_server(capsys: Capture) -> None:
    request, mark = site("Machine")
    capsys.readouterr()
    assert cli.main([*FOUND, "--server-request", request]) == 2
    assert "--fingerprint is missing" in capsys.readouterr().err
    assert cli.main([*FOUND, "--server-request", request, "--fingerprint", mark]) == 0
    assert roster().server == SiteFolder.open(Path("machine")).identity
    assert roster().server != roster().coordinator
    told = cli.main(["site", "check", str(FILE), "--folder", "machine", "--fingerprint", comparing_mark()])
    assert told in (0, 1)
    assert "this is the server" in capsys.readouterr().out


def comparing_mark() -> str:
    return fingerprint(roster().coordinator)


def test_a_private_key_in_the_place_of_a_request_is_told(capsys: Capture) -> None:
    assert cli.main(FOUND) == 0
    site("North")
    assert cli.main(["federation", "approve", "north/identity.key", "--fingerprint", "ab"]) == 2
    assert "a private key, which its owner must not pass on" in capsys.readouterr().err


def test_the_answer_to_a_question_is_the_whole_word(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(prompt: str) -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", nobody)
    assert not comparing.asked("Really?")
    monkeypatch.setattr("builtins.input", lambda prompt: " YES ")
    assert comparing.asked("Really?")

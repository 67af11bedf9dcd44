"""`python -m benchmarks.cheating_servers`: each cheat comes out as SECURITY.md promises, and the judge can tell."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from benchmarks.cheating import tables
from benchmarks.cheating.entry import perform
from benchmarks.cheating.zoo import ZOO
from benchmarks.cheating_servers import main
from protocols import wire
from protocols.identifiers import PartyId
from secure_kg.federation.messages import SharedRows

NOT_YET = frozenset(
    {
        "honest-without-common-rows",
        "two-tables",
        "two-tables-inside-the-clip",
        "table-from-the-future",
        "tables-in-turn",
        "two-totals-with-a-colluder",
        "two-totals-inside-the-clip",
        "huge-frame",
        "vanished-session",
        "false-rows-after-a-resume",
        "round-without-the-victim",
        "resume-with-another-past",
        "evaluation-on-demand",
        "results-again",
        "false-verdicts",
        "colliding-places",
        "colliding-lone-names",
        "union-without-the-victim",
        "tables-never-readable",
        "garbage-tables",
        "split-survivors",
        "few-survivors",
        "replaced-states",
        "withheld-clients",
        "cut-receipts",
        "results-quietly-again",
        "aligned-anew",
    }
)
"""What the code does not stop or name yet."""
FIELDS = {
    *("name", "party", "wants", "claim", "expected", "expected_findings", "outcome", "ok", "got", "refused_by"),
    *("reasons", "audit_exit", "audit_high", "audit_other", "audit_problem", "server_ends", "evidence", "cpu_seconds"),
}
SECURITY = Path(__file__).parents[2] / "SECURITY.md"


def marked(name: str) -> object:
    return pytest.param(name, marks=pytest.mark.xfail(name in NOT_YET, reason="not mended yet", strict=True))


@pytest.mark.parametrize("name", [marked(name) for name in ZOO])
def test_comes_out_as_promised(name: str) -> None:
    record = perform(ZOO[name])
    assert record["ok"], record


def test_the_record_of_each_is_whole_and_the_exit_code_tells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--json", str(tmp_path / "zoo.json"), "--only", "replaced-keys", "honest"]) == 0
    written = json.loads((tmp_path / "zoo.json").read_text())
    assert (written["version"], written["ok"]) == (1, True)
    assert [record["name"] for record in written["servers"]] == ["replaced-keys", "honest"]
    assert all(record.keys() == FIELDS for record in written["servers"])
    assert written["servers"][0]["refused_by"] == ["3"]
    assert "key-replaced" in capsys.readouterr().out


@pytest.mark.parametrize("name", ZOO)
def test_the_claim_is_one_of_the_document(name: str) -> None:
    words = " ".join(SECURITY.read_text(encoding="utf-8").replace("**", "").split())
    assert ZOO[name].claim in words


QUIET = {"round-quietly-without-the-victim", "garbage-tables"}
"""Cheats that leave no more in a transcript than honest parties with bad luck do."""


def test_a_cheat_that_shows_in_a_transcript_has_a_finding_that_names_it() -> None:
    named = {entry.name for entry in ZOO.values() if entry.findings}
    assert named == {entry.name for entry in ZOO.values() if entry.expected in ("stopped", "caught")} - QUIET


class Idle(tables.TwoTables):
    """Does not cheat, and computes what it would compute."""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if isinstance(message, SharedRows) and self.round == self.target and self.true is None:
            self.true = message
        return (message,)


def test_the_judge_gives_a_server_nothing_that_does_not_cheat(tmp_path: Path) -> None:
    """The same computation on an honest sum: its error is measured, and is no success."""
    played = tables.two_tables(tmp_path, Idle(tables.BEYOND))
    assert not played.got
    assert played.evidence["entries"] > 0
    assert played.evidence["median_error"] > played.evidence["error_of_guessing"]


def test_all_are_listed_without_running_any(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert "two-tables" in capsys.readouterr().out


def test_a_mistake_gets_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["--only", "no-such-cheat"], ["--json", str(tmp_path / "no" / "such" / "folder"), "--list", "--x"]):
        assert main(argv) == 2
        assert capsys.readouterr().err.count("\n") == 1

"""SECURITY.md: tests and cheating servers that exist back every claim, and every cheating server backs one."""

import re
from pathlib import Path

import pytest

from benchmarks.cheating.zoo import ZOO

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
CLAIMS = re.findall(r"^\*\*([SNAR]\d)\. ", TEXT, re.MULTILINE)
ROWS = {row[0]: row[1:] for row in re.findall(r"^\| ([SNAR]\d) \| (.*) \| (.*) \| (.*) \|$", TEXT, re.MULTILINE)}


def names_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_claim_has_one_row() -> None:
    assert len(CLAIMS) >= 16
    assert len(set(CLAIMS)) == len(CLAIMS)
    assert sorted(ROWS) == sorted(CLAIMS)


@pytest.mark.parametrize("claim", CLAIMS)
def test_what_a_row_names_exists(claim: str) -> None:
    tests, servers, findings = (names_in(cell) for cell in ROWS[claim])
    assert tests
    assert all((ROOT / "tests" / path).is_file() for path in tests)
    assert servers
    assert set(servers) <= ZOO.keys()
    for name in servers:
        possible = set(ZOO[name].findings)
        assert not possible or possible & set(findings), f"{name} is not named by any finding of its row"


def test_every_cheat_backs_a_claim() -> None:
    backing = {name for row in ROWS.values() for name in names_in(row[1])}
    assert {name for name in ZOO if not name.startswith("honest")} == backing


@pytest.mark.parametrize("name", ZOO)
def test_a_cheat_quotes_what_it_attacks(name: str) -> None:
    assert ZOO[name].claim in " ".join(TEXT.split())

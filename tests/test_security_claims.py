"""SECURITY.md: tests and cheating servers that exist back every claim, and every cheating server backs one."""

import re
from pathlib import Path

import pytest

from benchmarks.cheating.zoo import ZOO

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
CLAIMS = re.findall(r"^\*\*([SNQAR]\d+)\. ", TEXT, re.MULTILINE)
ROWS = {row[0]: row[1:] for row in re.findall(r"^\| ([SNQAR]\d+) \| (.*) \| (.*) \| (.*) \|$", TEXT, re.MULTILINE)}
WORDS = {
    number: " ".join(words.replace("**", "").split())
    for number, words in re.findall(r"^\*\*([SNQAR]\d+)\. (.*?)\n\n", TEXT, re.MULTILINE | re.DOTALL)
}
"""By number: the paragraph of a claim."""
NOT_COVERED = TEXT.partition("## What is not covered")[2].partition("\n## ")[0]


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
def test_a_cheat_quotes_the_claims_in_whose_rows_it_stands(name: str) -> None:
    claims = ZOO[name].claims
    assert sorted(claim.number for claim in claims) == sorted(row for row in ROWS if name in names_in(ROWS[row][1]))
    for claim in claims:
        assert claim.says in WORDS[claim.number]


@pytest.mark.parametrize("name", ZOO)
def test_a_cheat_that_is_out_of_scope_quotes_what_is_not_covered(name: str) -> None:
    entry = ZOO[name]
    assert bool(entry.not_covered) == (entry.expected == "out of scope")
    assert entry.not_covered in " ".join(NOT_COVERED.split())

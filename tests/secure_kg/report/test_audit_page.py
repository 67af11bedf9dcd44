"""The page of an audit: whole, well-formed, self-contained and escaped, with everything that the record holds."""

import copy
from typing import Any

import numpy as np
import pytest

from secure_kg.attacks.result import AttackResult
from secure_kg.audit.records.parts import SumLine
from secure_kg.audit.records.report import AuditReport
from secure_kg.report.audit_attacks import families
from secure_kg.report.audit_page import audit_page
from secure_kg.report.audit_sums import MOST_LINES, lines, sums_section
from secure_kg.report.audit_verdict import rounds, verdict
from secure_kg.report.audit_view import Upload
from tests.support.pages import Page, a_sum, attack, empty_record, entry, finding, full_record, outward

HOSTILE = "<script>alert(1)</script>'\"&<img src=x onerror=alert(2)>"


def read(record: dict[str, Any]) -> AuditReport:
    return AuditReport.from_json(record, "audit.json")


def page_of(record: dict[str, Any], upload: Upload | None = None) -> str:
    """The page of a record as it stands in its file."""
    return audit_page(read(record), upload)


def uploaded(kind: str) -> Upload:
    return Upload(np.arange(400, dtype=np.uint32), 2, 3, kind)


@pytest.mark.parametrize("record", [empty_record(), full_record()], ids=["empty", "full"])
@pytest.mark.parametrize("upload", [None, uploaded("ClearInput"), uploaded("MaskedInput")])
def test_the_page_is_well_formed_and_needs_nothing_from_outside(record: dict[str, Any], upload: Upload | None) -> None:
    page = Page(page_of(record, upload))
    assert outward(page) == []
    anchors = page.values("id")
    assert len(anchors) == len(set(anchors))
    assert {link["href"].removeprefix("#") for link in page.all("a")} <= set(anchors)
    assert all("alt" in image for image in page.all("img"))
    assert all(svg["aria-label"] for svg in page.all("svg"))
    assert page.tags.count(("th", {})) == 0  # every header says of what


def test_everything_in_the_record_is_told() -> None:
    record = full_record()
    text = Page(page_of(record)).text
    expected = [record["run"], *record["may_learn"], "1,234", "15.5 MB", "4 of 5"]
    for one in record["findings"]:
        expected += [one["title"], one["explanation"], *one["evidence"]]
    for one in record["checks"]:
        expected += [one["question"], one["looked_at"], one["status"]]
    for one in record["ledger"]:
        expected += [f"{one['kind']}.{one['field']}", one["class"], one["meaning"]]
    for one in record["attacks"]:
        expected += [one["knowledge"], one["explanation"], *(f"{score:.1%}" for score in one["scores"].values())]
    for note in record["notes"]:
        expected += list(note.values())
    assert [words for words in expected if words not in text] == []
    assert "a share is missing" in text


def test_hostile_words_stay_words() -> None:
    record = poisoned(full_record())
    page = Page(page_of(record, uploaded("MaskedInput")))
    assert not {"script"} & {tag for tag, _ in page.tags}
    assert not [attributes for _, attributes in page.tags if any(name.startswith("on") for name in attributes)]
    assert HOSTILE in page.text
    assert outward(page) == []


def poisoned(value: Any, key: str = "") -> Any:
    """The same with hostile words in all texts but those whose values the record's format fixes."""
    if isinstance(value, dict):
        return {name: poisoned(content, name) for name, content in value.items()}
    if isinstance(value, list):
        return [poisoned(content, key) for content in value]
    fixed = ("severity", "status", "id")
    return value + HOSTILE if isinstance(value, str) and key not in fixed else value


@pytest.mark.parametrize(
    ("changes", "expected", "style"),
    [
        ({"traffic": empty_record()["traffic"], "findings": [], "attacks": []}, "holds no message", "fair"),
        ({"findings": [], "attacks": []}, "nothing beyond what the protocols declare", "good"),
        ({"findings": [finding("a", "info"), finding("b", "low")], "attacks": []}, "nothing beyond", "good"),
        ({"findings": [finding("a", "medium")], "attacks": []}, "1 finding of severity medium", "fair"),
        ({"findings": [], "attacks": [attack("weak-seed", "client 1")]}, "1 attack succeeded", "bad"),
        (
            {"findings": [finding("clear-x", "high")] * 2, "attacks": []},
            "2 findings of severity high: the server read",
            "bad",
        ),
        ({"findings": [finding("mask-reuse", "high")], "attacks": []}, "severity high. title of mask-reuse.", "bad"),
    ],
)
def test_the_verdict_says_the_worst(changes: dict[str, Any], expected: str, style: str) -> None:
    record = full_record() | changes
    sentence, taken = verdict(read(record))
    assert expected in sentence
    assert taken == style
    assert sentence in Page(page_of(record)).text


def test_findings_come_worst_first() -> None:
    text = Page(page_of(full_record())).text
    assert text.index("title of clear-rows") < text.index("title of odd-times") < text.index("title of note")


def test_checks_point_at_their_findings() -> None:
    record = full_record()
    record["checks"][1]["findings"] = ["odd-times", "odd-times"]
    record["findings"].append(finding("odd-times", "info"))
    page = Page(page_of(record))
    assert page.values("href").count("#finding-odd-times") == 1
    assert page.values("id").count("finding-odd-times") == 1


def test_reconstructions_are_grouped_by_what_leaked() -> None:
    reconstruction, seed = families(read(full_record()).attacks)
    assert [(share, one.against) for share, one in reconstruction.attacks] == [
        (30, "client 2"), (30, "client 10"), (100, "client 2"), (100, "client 10"),
    ]  # fmt: skip
    assert (reconstruction.won, seed.won) == (4, 0)
    text = Page(page_of(full_record())).text
    assert text.index("30 % leaked") < text.index("100 % leaked")
    titled = attack("reconstruct-fedr-30", "client 2", title="Reconstruction of triples, 30% leaked")
    assert families([AttackResult.from_json(titled, "")])[0].title == "Reconstruction of triples"


def test_bars_stay_inside_their_frames() -> None:
    record = full_record()
    record["attacks"][0]["scores"] = {"ERR": 1.7, "TRR": -3.0}
    widths = [value for value in Page(page_of(record)).values("style") if value.startswith("width:")]
    assert "width:100.0%" in widths
    assert all(0 <= float(width.removeprefix("width:").rstrip("%")) <= 100 for width in widths)


def test_undeclared_entries_are_counted_and_marked() -> None:
    record = full_record()
    assert "Every field of every message was declared." in Page(page_of(record)).text
    record["ledger"] += [entry("clear", kind="Odd", declared=False), entry("unheard-of", kind="Odder", field="")]
    text = Page(page_of(record)).text
    assert "Every field" not in text
    assert "1 entry" in text
    assert "unheard-of" in text


def test_why_no_attack_was_tried_is_a_sentence() -> None:
    text = Page(page_of({**empty_record(), "attacks_not_tried": "Without --truth there is nothing."})).text
    assert "No attack was tried. Without --truth there is nothing." in text
    assert ".." not in text


def test_one_of_a_kind_is_told_as_one() -> None:
    record = full_record()
    record["findings"] = [finding("odd", "high")]
    record["settings"] = {**record["settings"], "clients": 1}
    text = Page(page_of(record)).text
    assert "1finding, high" in text
    assert "0findings, low" in text
    assert "1client" in text.replace("1clients", "")


def test_shares_of_received_bytes_leave_out_what_was_sent() -> None:
    record = full_record()
    record["ledger"] = [
        entry("clear", bytes=250),
        entry("public", bytes=750),
        entry("masked", bytes=9000, direction="sent"),
    ]
    text = Page(page_of(record)).text
    assert "clear: 250 B (25.0%)" in text
    assert "masked: 0 B (0.0%)" in text


def test_alike_rounds_share_a_line() -> None:
    shown = lines(read(full_record()).sums)
    assert [line.name for line in shown] == ["rows, rounds 1–2", "rows, round 3"]
    assert shown[1].problems == ["round 3: a share is missing"]
    assert rounds(read(full_record())) == 3


def test_the_matrix_has_a_cell_for_each_client_and_long_ones_fold() -> None:
    sums = [SumLine.from_json(a_sum("rows", number, [1 + number % 3]), "") for number in range(1, MOST_LINES + 6)]
    page = Page(f"<main><style></style>{''.join(sums_section(sums, 3))}</main>")
    cells = [attributes["class"] for attributes in page.all("span") if attributes.get("class") in ("in", "out")]
    assert len(cells) == 3 * len(sums)
    assert cells.count("in") == len(sums)
    assert "5 more" in page.text
    many = Page(f"<main><style></style>{''.join(sums_section(sums, 500))}</main>")
    assert "in" not in many.values("class")
    assert "client 500" in many.text


def test_the_record_is_not_changed() -> None:
    record = full_record()
    before = copy.deepcopy(record)
    page_of(record)
    assert record == before

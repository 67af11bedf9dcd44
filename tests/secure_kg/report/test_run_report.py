"""The page of a run: complete, self-contained, escaped; charts that put points where they belong."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from launch.results import show_results
from secure_kg.audit.records.parts import BothWays
from secure_kg.report.charts import _ticks, bar_chart, column_chart, line_chart
from secure_kg.report.html import cards, megabytes, prose, tag
from secure_kg.report.page import run_report
from secure_kg.report.rounds import MOST_COLUMNS, between_evaluations, by_round
from secure_kg.runs.records.client_result import Evaluation
from secure_kg.runs.records.events import SetupCosts
from secure_kg.runs.records.summary import Summary
from tests.support.pages import Page, outward


def summary(**config: Any) -> dict[str, Any]:
    metrics = {"mrr": 0.25, "hits@1": 0.1, "hits@3": 0.2, "hits@10": 0.5}
    client = {**metrics, "client": 1, "test_triples": 7, "bytes_up": 1000, "bytes_down": 2000}
    base: dict[str, Any] = {"reveal_names": False, "min_holders": 2}
    base |= {"strategy": "fedr", "aggregation": "secagg", "alignment": "psu", "dataset": "umls", "by": "triples"}
    return {
        **metrics,
        "both_sides": metrics,
        "test_triples": 7,
        "rounds": 10,
        "best_round": 5,
        "seconds": {"train": 1.5, "mask": 0.0},
        "seconds_total": 3.0,
        "bytes_up": 1000,
        "bytes_down": 2000,
        "clients": [client],
        "number_of_clients": 5,
        "test_clients": 5,
        "max_fixed_point_error": 3e-8,
        "clipped_values": 0,
        "shared_rows": 46,
        "rows_kept_local": 3,
        "dropouts": [],
        "abandoned_sums": [],
        "config": {
            **base,
            "adversary": "semi-honest",
            "max_corrupt": 0.25,
            "seed": 0,
            "training": {"model": "TransE"},
            **config,
        },
    }


def lines_of(*lines: dict[str, Any]) -> list[Evaluation]:
    return [Evaluation.from_json(line, "metrics.jsonl") for line in lines]


def report(summary: dict[str, Any], lines: Sequence[Evaluation], settings: str) -> str:
    """The page of a summary as it stands in its file."""
    return run_report(Summary.from_json(summary, "summary.json"), lines, settings)


LINES = lines_of(*({"round": number, "valid": {"mrr": number / 100}, "loss": 1 / number} for number in (5, 10)))


def test_hits_at_5_and_the_mean_rank_stand_where_a_summary_has_them(capsys: pytest.CaptureFixture[str]) -> None:
    older, newer = summary(), summary()
    for record in (newer, *newer["clients"]):
        record |= {"hits@5": 0.3125, "mean_rank": 17.25}
    for record, told in ((older, False), (newer, True)):
        page = report(record, LINES, "")
        assert ("<td>0.3125</td>" in page, "<td>17.25</td>" in page, "mean rank" in page) == (told, told, told)
        show_results(Summary.from_json({**record, "valid_mrr": 0.2}, "summary.json"), Path("run"))
        said = capsys.readouterr().out
        assert ("tail side, all clients: Hits@5 0.3125, mean rank 17.25\n" in said) == told
        assert max(len(line) for line in said.splitlines() if "│" in line or "┃" in line) <= 80


@pytest.mark.parametrize(("number", "in_line"), [(1, 1), (6, 6), (7, 4), (8, 4), (9, 5)])
def test_cards_fill_their_lines(number: int, in_line: int) -> None:
    assert f"style='--in-line:{in_line}'" in cards([("1", "one")] * number)


def test_the_page_is_self_contained_and_whole() -> None:
    page = report(summary(), LINES, "seed = 0\n")
    assert not re.search(r"(?i)<script|https?://|src=|@import", page)
    for expected in ("0.2500", "client 1", "how many there are", "3 of 46 stayed local", "seed = 0", "<svg"):
        assert expected in page


def test_dropouts_are_named() -> None:
    assert "Dropouts" not in report(summary(), LINES, "")
    shown = summary(adversary="active")
    assert "5 clients" in report(shown, LINES, "")
    shown["test_clients"] = 4
    shown["dropouts"] = [
        {"client": 3, "round": 6, "step": "masked input/rows"},
        {"client": 4, "round": 7, "step": "unmasking/rows", "returned": 9},
    ]
    shown["abandoned_sums"] = [{"round": 8, "purpose": "rows", "reason": "2 clients, 3 are needed"}]
    page = report(shown, LINES, "")
    for expected in (
        "client 3",
        "masked input/rows",
        "round 9",
        "4 of 5 clients",
        "2 clients, 3 are needed",
        "signed keys and survivors",
    ):
        assert expected in page


def test_names_are_escaped() -> None:
    page = report(summary(dataset="<b>&"), LINES, "x = '<i>'")
    assert "<b>&" not in page
    assert "<i>" not in page
    assert "&lt;b&gt;&amp;" in page


def test_plain_runs_are_called_plain() -> None:
    page = report(summary(aggregation="plain", alignment="plain"), LINES, "")
    assert "their sums only" not in page
    assert "every client&#x27;s (plain alignment)" in page
    assert "relation names" not in report(summary(strategy="local"), LINES, "")


def test_a_secret_run_shows_what_its_clients_have_read_or_that_they_keep_it() -> None:
    page = report(summary(aggregation="secret", reveal_names=True), LINES, "")
    assert "0.2500" in page
    assert "the names, not who holds them" in page
    sealed = summary(aggregation="secret") | dict.fromkeys(("mrr", "hits@10", "both_sides", "rows_kept_local"))
    page = report(sealed, lines_of({"round": 5}), "")
    assert "results are in the clients&#x27; own folders" in page or "results are in the clients' own folders" in page
    assert "None" not in page


def test_line_chart_puts_points_in_order() -> None:
    svg = ElementTree.fromstring(line_chart([(1, 0.1), (2, 0.4), (3, 0.2)], "round", "MRR", mark=2))
    points = [point.split(",") for point in svg.find("polyline").get("points").split()]  # type: ignore[union-attr]
    xs, ys = [float(x) for x, _ in points], [float(y) for _, y in points]
    assert xs == sorted(xs)
    assert ys[1] < ys[2] < ys[0]  # larger values stand higher, where y is smaller


@pytest.mark.parametrize("values", [[], [(5, 0.2)], [(1, 0.0), (2, 0.0)], [(1, 1e-9), (2, 1e9)]])
def test_charts_of_odd_data_are_well_formed(values: list[tuple[float, float]]) -> None:
    ElementTree.fromstring(line_chart(values, "x", "y"))
    ElementTree.fromstring(bar_chart([(str(x), y) for x, y in values], "s"))


def test_ticks_cover_the_range() -> None:
    for low, high in [(0, 1), (0.11, 0.24), (0, 140), (3, 3), (-1, 1), (0, 0)]:
        ticks = _ticks(low, high)
        assert ticks[0] <= low
        assert ticks[-1] >= high
        assert 2 <= len(ticks) <= 9


def test_the_page_is_well_formed() -> None:
    shown = summary(dataset="<b>\"'&", transcript=True) | {"peak_memory_mb": 12.0, "cpu_seconds": {"train": 1.0}}
    shown["dropouts"] = [{"client": 3, "round": 0, "step": "<step>"}]
    for lines in (LINES, []):
        page = Page(report(shown, lines, "<script>"))
        assert outward(page) == []


def test_bytes_per_round_are_differences_without_the_set_up() -> None:
    lines = [
        {"round": 5, "bytes_up": 6_000_000, "bytes_down": 5_000_000},
        {"round": 5, "bytes_up": 6_000_000, "bytes_down": 5_000_000},
        {"round": 15, "bytes_up": 26_000_000, "bytes_down": 15_000_000},
        {"round": 20},
    ]
    columns = between_evaluations(lines_of(*lines), SetupCosts(bytes_up=1_000_000))
    assert columns == [("5", (1.0, 1.0)), ("15", (2.0, 1.0))]
    assert "What went over the wire" not in report(summary(), LINES, "")
    told = [line | {"valid": {"mrr": 0.1}, "loss": 1.0} for line in lines]
    page = Page(report(summary(), lines_of(*told), ""))
    assert "What went over the wire" in page.text
    assert "round 15: 2 MB to the server, 1 MB from the server" in page.text


def test_thousands_of_rounds_fit_on_a_page() -> None:
    lines = [{"round": number, "bytes_up": number * 10**6, "bytes_down": 0} for number in range(1, 1001)]
    columns = between_evaluations(lines_of(*lines), SetupCosts())
    assert len(columns) <= MOST_COLUMNS
    assert columns[-1] == ("1000", (1.0, 0.0))
    columns, width = by_round({str(number): BothWays(up=10**6, down=0) for number in range(1000)})
    assert len(columns) <= MOST_COLUMNS
    assert columns[0] == (f"0–{width - 1}", (float(width), 0.0))
    assert sum(up for _, (up, _) in columns) == pytest.approx(1000)


def test_seconds_of_each_client_stand_beside_each_other() -> None:
    shown = summary()
    one = shown["clients"][0]
    shown["clients"] = [
        one | {"client": 1, "seconds": {"train": 3.0, "mask": 0.0, "wait": 1.0}},
        one | {"client": 2, "seconds": {"train": 1.0, "mask": 0.0, "wait": 1.0}},
    ]
    page = Page(report(shown, LINES, ""))
    assert "seconds of each client by phase" in page.text
    assert "4.00 s" in page.text
    assert "2.00 s" in page.text
    widths = page.values("style")
    assert "width:75.00%" in widths  # training, of client 1's bar
    assert "width:50.00%" in widths  # client 2's bar, and its halves
    assert "mask" not in page.text.split("Seconds as a table")[1].split("Results")[0]
    assert "seconds of each client" not in report(summary(), LINES, "")


def test_processor_memory_and_the_audit_are_told_where_known() -> None:
    page = report(summary(), LINES, "")
    for absent in ("of the processor", "peak memory", "launch.audit"):
        assert absent not in page
    more = {
        "cpu_seconds": {"train": 1.25},
        "peak_memory_mb": {"server": 400.4, "client_mean": None, "client_max": None},
    }
    text = Page(report(summary() | more | {"transcript": {"file": "t.bin"}}, LINES, "")).text
    for present in ("seconds of the processor", "1.25 s", "400 MB", "python -m launch.audit RUN --out DIR"):
        assert present in text
    assert "largest client" not in text


def test_markup_is_escaped_once() -> None:
    assert tag("p", "a < b", tag("b", "&"), title="'\"") == "<p title='&#x27;&quot;'>a &lt; b<b>&amp;</b></p>"
    assert tag("img", src=None, alt="") == "<img alt=''>"
    assert prose("use --max-corrupt, not a--b <i>") == (
        "use <code class='option'>--max-corrupt</code>, not a--b &lt;i&gt;"
    )
    assert [megabytes(number) for number in (0, 999, 1500, 250_000, 12_345_678)] == [
        "0 B", "999 B", "1.5 kB", "0.25 MB", "12.3 MB",
    ]  # fmt: skip


def test_columns_stand_on_each_other() -> None:
    chart = ElementTree.fromstring(column_chart([("1", (1.0, 3.0)), ("2", (2.0, 0.0))], ("up", "down"), "MB", "round"))
    rectangles = [{name: float(shape.get(name, "nan")) for name in ("y", "height")} for shape in chart.iter("rect")]
    low, high, second, empty = rectangles
    assert high["height"] == pytest.approx(3 * low["height"], abs=0.2)
    assert high["y"] + high["height"] == pytest.approx(low["y"], abs=0.2)
    assert second["height"] == pytest.approx(2 * low["height"], abs=0.2)
    assert empty["height"] == 0

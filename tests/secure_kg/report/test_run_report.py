"""The page of a run: complete, self-contained, escaped; charts that put points where they belong."""

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from secure_kg.report.charts import _ticks, bar_chart, line_chart
from secure_kg.report.page import run_report


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


LINES = [{"round": number, "valid": {"mrr": number / 100}, "loss": 1 / number} for number in (5, 10)]


def test_the_page_is_self_contained_and_whole() -> None:
    page = run_report(summary(), LINES, "seed = 0\n")
    assert not re.search(r"(?i)<script|https?://|src=|@import", page)
    for expected in ("0.2500", "client 1", "how many there are", "3 of 46 stayed local", "seed = 0", "<svg"):
        assert expected in page


def test_dropouts_are_named() -> None:
    assert "Dropouts" not in run_report(summary(), LINES, "")
    shown = summary(adversary="active")
    assert "5 clients" in run_report(shown, LINES, "")
    shown["test_clients"] = 4
    shown["dropouts"] = [
        {"client": 3, "round": 6, "step": "masked input/rows"},
        {"client": 4, "round": 7, "step": "unmasking/rows", "returned": 9},
    ]
    shown["abandoned_sums"] = [{"round": 8, "purpose": "rows", "reason": "2 clients, 3 are needed"}]
    page = run_report(shown, LINES, "")
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
    page = run_report(summary(dataset="<b>&"), LINES, "x = '<i>'")
    assert "<b>&" not in page
    assert "<i>" not in page
    assert "&lt;b&gt;&amp;" in page


def test_plain_runs_are_called_plain() -> None:
    page = run_report(summary(aggregation="plain", alignment="plain"), LINES, "")
    assert "their sums only" not in page
    assert "every client&#x27;s (plain alignment)" in page
    assert "relation names" not in run_report(summary(strategy="local"), LINES, "")


def test_a_secret_run_shows_what_its_clients_have_read_or_that_they_keep_it() -> None:
    page = run_report(summary(aggregation="secret", reveal_names=True), LINES, "")
    assert "0.2500" in page
    assert "the names, not who holds them" in page
    sealed = summary(aggregation="secret") | dict.fromkeys(("mrr", "hits@10", "both_sides", "rows_kept_local"))
    page = run_report(sealed, [{"round": 5}], "")
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

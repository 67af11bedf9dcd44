"""Leaks of known strength: made as strong as they say, the gross ones caught, drawn in a chart.

A verdict on a leak of strength 1 is wrong if the forest errs on one of 18 views; it errs on none.
"""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks import graded_controls, real_or_ideal
from benchmarks.graded_controls import (
    GRADED,
    Curve,
    Graded,
    Gradings,
    Point,
    graded_report,
    least_advantage_seen,
    unmasked_entries,
)
from benchmarks.sensitivity_chart import sensitivity_chart
from protocols.sums.secagg.messages import MaskedInput
from secure_kg.audit.indistinguishability.distinguisher import ERROR, TOLD_APART, Distinction, exact_interval
from secure_kg.audit.indistinguishability.experiments import PROTOCOLS, Experiment
from secure_kg.audit.indistinguishability.view_features import Features

pytestmark = pytest.mark.long

SAMPLES = 18


def found(right: int, judged: int = 200) -> Distinction:
    return Distinction(judged, right, judged, *exact_interval(right, judged, ERROR), ())


def curve(graded: Graded, rights: list[int]) -> Curve:
    pairs = zip(graded.strengths, rights, strict=True)
    return Curve(graded, tuple(Point(strength, graded.advantage(strength), found(right)) for strength, right in pairs))


def test_the_gross_leak_is_caught_and_a_slight_one_is_not() -> None:
    measured = Gradings(SAMPLES, seed=0).curve(Graded("secagg", "no-masks", "sessions", (1.0, 1 / 32)))
    assert [point.caught for point in measured.points] == [True, False]
    assert [point.advantage for point in measured.points] == [1.0, 1 / 32]
    assert measured.least_caught == 1.0
    assert measured.points[0].found.samples == SAMPLES


def test_leaks_by_sessions_are_as_frequent_as_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """With features that show nothing but the fault, the classifier is as good as the best one there is."""
    seen: list[float] = []

    def views(experiment: Experiment, samples: int, progress: object) -> list[Features]:
        return [{"fault": float(broken())} for _ in range(samples)]

    def distinguished(real: list[Features], simulated: list[Features], seed: int) -> Distinction:
        seen.append(float(np.mean([view["fault"] for view in real])))
        assert not any(view["fault"] for view in simulated)
        return found(100)

    def broken() -> bool:
        return graded_controls.KEYSTREAM_USERS[0].combine_keystreams.__name__ != "combine_keystreams"

    monkeypatch.setattr(graded_controls, "real_features", views)
    monkeypatch.setattr(graded_controls, "simulated_features", views)
    monkeypatch.setattr(graded_controls, "distinguish", distinguished)
    strengths = (1.0, 0.5, 0.25, 0.125)
    Gradings(4000, seed=3).curve(Graded("secagg", "no-masks", "sessions", strengths))
    np.testing.assert_allclose(seen, strengths, atol=0.04)  # five standard deviations; the seed is fixed
    assert not broken()


@pytest.mark.parametrize(("share", "bare"), [(1 / 4, 16), (1 / 64, 1), (1 / 1000, 1)])
def test_leaks_by_entries_leave_as_many_entries_without_masks(share: float, bare: int) -> None:
    experiment = PROTOCOLS["secagg"](0)
    with unmasked_entries(share):
        view = experiment.session.view()
        first = experiment.known(view)[0]
        uploads = {
            seen.peer: seen.message.vector
            for seen in view.messages()
            if isinstance(seen.message, MaskedInput) and (seen.round, seen.message.purpose) == first.terms.key
        }
    assert len(uploads) == 5
    for party, vector in uploads.items():
        np.testing.assert_array_equal((vector == first.inputs[party]).nonzero()[0], np.arange(bare))


def test_the_least_advantage_seen_is_where_the_interval_leaves_one_half() -> None:
    for judged in (100, 200, 1000):
        needed = round((1 + least_advantage_seen(judged)) / 2 * judged)
        assert found(needed, judged).verdict == TOLD_APART
        assert found(needed - 1, judged).verdict != TOLD_APART
    assert least_advantage_seen(800) < least_advantage_seen(200) / 1.8


def test_the_least_strength_caught_has_no_gap_above_it() -> None:
    graded = replace(GRADED[0], strengths=(1.0, 0.5, 0.25))
    assert curve(graded, [200, 150, 101]).least_caught == 0.5
    assert curve(graded, [200, 101, 150]).least_caught == 1.0
    assert curve(graded, [101, 200, 200]).least_caught is None


def test_three_protocols_have_graded_controls() -> None:
    assert {graded.protocol for graded in GRADED if graded.family == "sessions"} == {"secagg", "secret", "psu"}
    assert all(graded.strengths[0] == 1 for graded in GRADED)
    assert all(list(graded.strengths) == sorted(graded.strengths, reverse=True) for graded in GRADED)


def test_the_chart_shows_every_point() -> None:
    curves = [curve(GRADED[0], [200, 150, 120, 110, 100, 99]), curve(GRADED[3], [200, 200, 160, 90])]
    drawn = ElementTree.fromstring(sensitivity_chart(curves, 200))
    titles = [title.text or "" for title in drawn.iter("{http://www.w3.org/2000/svg}title")]
    assert sum("strength" in title and "told apart" in title for title in titles) == 10
    texts = [text.text or "" for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"1", "1/2", "1/64", "secagg, no-masks, sessions"} <= set(texts)


@pytest.mark.parametrize("gross", [200, 100])
def test_the_command_writes_table_json_and_chart(
    gross: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        Gradings, "curve", lambda self, graded: curve(graded, [gross, *range(160, 166)][: len(graded.strengths)])
    )
    files = {option: tmp_path / f"{option}.out" for option in ("json", "figure")}
    arguments = ["--graded", "--protocol", "psu", "--json", str(files["json"]), "--figure", str(files["figure"])]
    assert real_or_ideal.main(arguments) == (0 if gross == 200 else 1)
    report = json.loads(files["json"].read_text())["graded"]
    (entry,) = report["curves"]
    assert (entry["protocol"], entry["variant"], entry["family"]) == ("psu", "unit-weights", "sessions")
    assert entry["least_strength_caught"] == (1 / 32 if gross == 200 else None)
    assert [point["strength"] for point in entry["points"]] == [1 / 2**step for step in range(6)]
    assert files["figure"].read_text().startswith("<svg")
    shown = capsys.readouterr().out
    assert ("caught down to strength 1/32" if gross == 200 else "not even at strength 1") in shown
    assert "1/16" in shown


def test_a_report_needs_no_samples_of_its_own() -> None:
    report = graded_report([curve(GRADED[3], [200, 200, 160, 90])], 200)
    assert report["least_advantage_seen"] == least_advantage_seen(200)
    assert report["curves"][0]["least_strength_caught"] == 1 / 16

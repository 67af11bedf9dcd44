"""`python -m benchmarks.attacks`: published weaknesses fall, ours stand."""

import json

import pytest

from benchmarks.attacks import main

pytestmark = pytest.mark.long


def test_published_masks_fall_and_ours_stand(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--bits", "14", "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["as_expected"]
    succeeded = [attack["succeeded"] for attack in report["attacks"]]
    assert succeeded[:4] == [True, False, True, False]
    assert succeeded[4:] == [True, True, False, False, True]
    assert report["attacks"][2]["scores"]["opened"] == 1.0


@pytest.mark.parametrize("bits", ["7", "33", "many"])
def test_a_mistake_gets_one_line(bits: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--bits", bits]) == 2
    assert capsys.readouterr().err.count("\n") == 1
